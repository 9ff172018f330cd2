output "key_id" {
  description = "The key's ARN: `keyId` of createAwsKmsCodec."
  value       = aws_kms_key.this.arn
}

output "alias" {
  description = "The key's alias."
  value       = aws_kms_alias.this.name
}

output "codec_options" {
  description = "Options of createAwsKmsCodec: `keyId`, `multiRegion` and `ringName`."
  value = {
    keyId       = aws_kms_key.this.arn
    multiRegion = var.multi_region
    ringName    = var.ring_name
  }
}

output "s3_ring_options" {
  description = "Options of s3Ring: `bucket`, `key` and `expectedBucketOwner`. Null with another store."
  value = local.in_s3 ? {
    bucket              = aws_s3_bucket_policy.ring[0].bucket
    key                 = local.object_key
    expectedBucketOwner = local.account_id
  } : null
}

output "dynamodb_ring_options" {
  description = "Options of dynamodbRing: `table` and `name`. Null with another store."
  value = local.in_dynamodb ? {
    table = aws_dynamodb_table.ring[0].name
    name  = var.ring_name
  } : null
}

locals {
  environment = merge(
    {
      SEALRING_AWS_KMS_KEY_ID       = aws_kms_key.this.arn
      SEALRING_AWS_KMS_MULTI_REGION = tostring(var.multi_region)
      SEALRING_RING_NAME            = var.ring_name
      SEALRING_RING_STORE           = var.store
    },
    local.in_s3 ? {
      SEALRING_S3_BUCKET       = aws_s3_bucket_policy.ring[0].bucket
      SEALRING_S3_BUCKET_OWNER = local.account_id
      SEALRING_S3_KEY          = local.object_key
    } : {},
    local.in_dynamodb ? { SEALRING_DYNAMODB_TABLE = aws_dynamodb_table.ring[0].name } : {},
  )
}

output "environment" {
  description = "The same options for containers, as a map of environment variables. No secrets."
  value       = local.environment
}

output "environment_file" {
  description = "The same variables as the text of an environment file, one NAME=value per line. No secrets."
  value       = join("", [for name, value in local.environment : "${name}=${value}\n"])
}

output "policies" {
  description = "IAM policies as JSON, one per role: `member`, `reader`, `rotator`, `break_glass`."
  value       = local.policies
}

output "key_policy" {
  description = "The key's own policy as JSON."
  value       = local.key_policy
}

output "bucket_policy" {
  description = "The bucket's policy as JSON. Null with another store."
  value       = local.in_s3 ? local.bucket_policy : null
}

output "vpc_endpoint_policies" {
  description = "Policies for VPC endpoints as JSON: `kms`, and `s3` or `dynamodb`. They allow only the given roles, each with its own permissions. Without roles there are no policies."
  value       = local.endpoint_policies
}
