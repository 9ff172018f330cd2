data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  account_id = data.aws_caller_identity.current.account_id
  partition  = data.aws_partition.current.partition
  root_arn   = "arn:${local.partition}:iam::${local.account_id}:root"

  role_arns = {
    member      = var.member_role_arns
    reader      = var.reader_role_arns
    rotator     = var.rotator_role_arns
    break_glass = var.break_glass_role_arns
  }

  # A list, not a map by ARN: ARNs of roles created in the same run are not known when planning, but their number is.
  attachments = flatten([for role, arns in local.role_arns : [for arn in arns : { role = role, arn = arn }]])

  in_s3       = var.store == "s3"
  in_dynamodb = var.store == "dynamodb"
  alias       = coalesce(var.alias, "alias/sealring-${replace(var.ring_name, ".", "-")}")
  name        = "sealring-${var.ring_name}"

  # Composed, not read from the resources, so that the policies are known before anything exists.
  object_key = coalesce(var.object_key, "${var.ring_name}.ring")
  bucket_arn = "arn:${local.partition}:s3:::${coalesce(var.bucket_name, "none")}"
  object_arn = "${local.bucket_arn}/${local.object_key}"
}

# The permissions. Every policy below consists of these statements.

locals {
  this_ring = { StringEquals = { "kms:EncryptionContext:sealring:ring" = var.ring_name } }

  member_key_actions = [var.later_key_wrapper ? "kms:Encrypt" : "kms:GenerateDataKey", "kms:Decrypt"]

  key_actions = {
    member      = local.member_key_actions
    reader      = ["kms:Decrypt"]
    rotator     = local.member_key_actions
    break_glass = ["kms:CancelKeyDeletion", "kms:DescribeKey", "kms:EnableKey", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus"]
  }

  key_statements = {
    for role, actions in local.key_actions : role => [merge(
      { Sid = "SealringKey", Effect = "Allow", Action = actions, Resource = aws_kms_key.this.arn },
      role == "break_glass" ? {} : { Condition = local.this_ring },
    )]
  }

  s3_statements = {
    member = [
      { Sid = "SealringRing", Effect = "Allow", Action = ["s3:GetObject", "s3:PutObject"], Resource = local.object_arn },
      # Without it S3 answers 403 for a missing ring, and no ring could ever be created.
      { Sid = "SealringSeeThatThereIsNoRing", Effect = "Allow", Action = ["s3:ListBucket"], Resource = local.bucket_arn },
    ]
    reader = [
      { Sid = "SealringRing", Effect = "Allow", Action = ["s3:GetObject"], Resource = local.object_arn },
    ]
    rotator = [
      { Sid = "SealringRing", Effect = "Allow", Action = ["s3:GetObject", "s3:PutObject"], Resource = local.object_arn },
    ]
    break_glass = [
      {
        Sid      = "SealringRing"
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"]
        Resource = local.object_arn
      },
      {
        Sid      = "SealringSeeVersions"
        Effect   = "Allow"
        Action   = ["s3:ListBucket", "s3:ListBucketVersions"]
        Resource = local.bucket_arn
      },
    ]
  }

  table_arn = one(aws_dynamodb_table.ring[*].arn)
  ring_item = { "ForAllValues:StringEquals" = { "dynamodb:LeadingKeys" = ["ring#${var.ring_name}"] } }
  used_item = { "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["used#*"] } }

  claim_statements = [for statement in [
    { Sid = "SealringSingleUse", Effect = "Allow", Action = ["dynamodb:PutItem"], Resource = local.table_arn, Condition = local.used_item },
  ] : statement if var.single_use]

  dynamodb_statements = {
    member = concat([
      { Sid = "SealringRing", Effect = "Allow", Action = ["dynamodb:GetItem", "dynamodb:PutItem"], Resource = local.table_arn, Condition = local.ring_item },
    ], local.claim_statements)
    reader = concat([
      { Sid = "SealringRing", Effect = "Allow", Action = ["dynamodb:GetItem"], Resource = local.table_arn, Condition = local.ring_item },
    ], local.claim_statements)
    rotator = [
      { Sid = "SealringRing", Effect = "Allow", Action = ["dynamodb:GetItem", "dynamodb:PutItem"], Resource = local.table_arn, Condition = local.ring_item },
    ]
    break_glass = [
      { Sid = "SealringRing", Effect = "Allow", Action = ["dynamodb:GetItem", "dynamodb:PutItem"], Resource = local.table_arn, Condition = local.ring_item },
      {
        Sid      = "SealringRestoreACopy"
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTable", "dynamodb:RestoreTableToPointInTime"]
        Resource = local.table_arn
      },
      # What DynamoDB requires on the copy for a restore.
      {
        Sid    = "SealringFillTheCopy"
        Effect = "Allow"
        Action = [
          "dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:DescribeTable", "dynamodb:GetItem",
          "dynamodb:PutItem", "dynamodb:Query", "dynamodb:RestoreTableToPointInTime", "dynamodb:Scan", "dynamodb:UpdateItem",
        ]
        Resource = "${coalesce(local.table_arn, "none")}-restored"
      },
    ]
  }

  # Whatever other policies a break-glass role has, it may not use the key.
  never_use = {
    Sid    = "SealringNeverUseTheKey"
    Effect = "Deny"
    Action = [
      "kms:CreateGrant", "kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext",
      "kms:ReEncryptFrom", "kms:ReEncryptTo",
    ]
    Resource = aws_kms_key.this.arn
  }

  policies = {
    for role in keys(local.role_arns) : role => jsonencode({
      Version = "2012-10-17"
      Statement = concat(
        local.key_statements[role],
        [for statement in local.s3_statements[role] : statement if local.in_s3],
        [for statement in local.dynamodb_statements[role] : statement if local.in_dynamodb],
        [for statement in [local.never_use] : statement if role == "break_glass"],
      )
    })
  }

  # An endpoint allows only these roles, and only what their policies allow.
  # Gateway endpoints accept only the principal *.
  endpoint_statements = {
    kms      = local.key_statements
    s3       = local.s3_statements
    dynamodb = local.dynamodb_statements
  }
  endpoint_policies = {
    for service in length(local.attachments) > 0 ? ["kms", var.store] : [] : service => jsonencode({
      Version = "2012-10-17"
      Statement = flatten([
        for role, arns in local.role_arns : [
          for statement in local.endpoint_statements[service][role] : merge(statement, {
            Sid       = "${statement.Sid}For${replace(title(replace(role, "_", " ")), " ", "")}"
            Principal = "*"
            Condition = merge(try(statement.Condition, {}), { ArnEquals = { "aws:PrincipalArn" = arns } })
          })
        ] if length(arns) > 0
      ])
    })
  }
}

# The key.

locals {
  administrators = length(var.administrator_arns) > 0 ? var.administrator_arns : [local.root_arn]

  # The account itself has no access: a principal that is not listed here may not use the key, whatever IAM policies say.
  key_policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid       = "Administer"
          Effect    = "Allow"
          Principal = { AWS = local.administrators }
          Action = [
            "kms:CancelKeyDeletion", "kms:CreateAlias", "kms:DeleteAlias", "kms:DescribeKey", "kms:DisableKey", "kms:EnableKey",
            "kms:EnableKeyRotation", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListGrants", "kms:ListKeyPolicies",
            "kms:ListKeyRotations", "kms:ListResourceTags", "kms:PutKeyPolicy", "kms:ReplicateKey", "kms:RevokeGrant",
            "kms:RotateKeyOnDemand", "kms:TagResource", "kms:UntagResource", "kms:UpdateAlias", "kms:UpdateKeyDescription",
            "kms:UpdatePrimaryRegion",
          ]
          Resource = "*"
        },
        {
          Sid       = "ScheduleDeletionWithTheWholeWindow"
          Effect    = "Allow"
          Principal = { AWS = local.administrators }
          Action    = ["kms:ScheduleKeyDeletion"]
          Resource  = "*"
          Condition = {
            NumericGreaterThanEquals = { "kms:ScheduleKeyDeletionPendingWindowInDays" = tostring(var.deletion_window_in_days) }
          }
        },
      ],
      [
        for role in ["member", "reader", "rotator"] : {
          Sid       = title(role)
          Effect    = "Allow"
          Principal = { AWS = local.role_arns[role] }
          Action    = local.key_actions[role]
          Resource  = "*"
          Condition = local.this_ring
        } if length(local.role_arns[role]) > 0
      ],
      [
        for role in ["break_glass"] : {
          Sid       = "BreakGlass"
          Effect    = "Allow"
          Principal = { AWS = local.role_arns[role] }
          Action    = local.key_actions[role]
          Resource  = "*"
        } if length(local.role_arns[role]) > 0
      ],
    )
  })
}

resource "aws_kms_key" "this" {
  description                        = "Wraps the data keys of the Sealring ring ${var.ring_name}"
  key_usage                          = "ENCRYPT_DECRYPT"
  customer_master_key_spec           = "SYMMETRIC_DEFAULT"
  enable_key_rotation                = true
  rotation_period_in_days            = var.rotation_period_in_days
  deletion_window_in_days            = var.deletion_window_in_days
  multi_region                       = var.multi_region
  policy                             = local.key_policy
  bypass_policy_lockout_safety_check = false
  tags                               = var.tags

  lifecycle {
    precondition {
      condition = alltrue([
        for arn in concat(values(local.role_arns)...) : split(":", arn)[4] == local.account_id
      ])
      error_message = "Every role must be in the account of the key: permissions across accounts need more than this module creates."
    }
  }
}

resource "aws_kms_alias" "this" {
  name          = local.alias
  target_key_id = aws_kms_key.this.key_id
}

# The ring in S3.

resource "aws_s3_bucket" "ring" {
  count = local.in_s3 ? 1 : 0

  bucket        = var.bucket_name
  force_destroy = var.allow_store_destruction
  tags          = var.tags
}

resource "aws_s3_bucket_public_access_block" "ring" {
  count = local.in_s3 ? 1 : 0

  bucket                  = aws_s3_bucket.ring[0].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "ring" {
  count = local.in_s3 ? 1 : 0

  bucket = aws_s3_bucket.ring[0].id
  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_versioning" "ring" {
  count = local.in_s3 ? 1 : 0

  bucket = aws_s3_bucket.ring[0].id
  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "ring" {
  count = local.in_s3 ? 1 : 0

  bucket = aws_s3_bucket.ring[0].id
  rule {
    # The data keys in the object are wrapped already; a second KMS key would only be another key that must work.
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "ring" {
  count = local.in_s3 ? 1 : 0

  bucket = aws_s3_bucket_versioning.ring[0].bucket
  rule {
    id     = "expire-old-rings"
    status = "Enabled"
    filter {}
    # The current version never expires.
    noncurrent_version_expiration {
      noncurrent_days = var.keep_noncurrent_days
    }
  }
}

locals {
  bucket_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "TlsOnly"
        Effect    = "Deny"
        Principal = "*"
        Action    = "s3:*"
        Resource  = [local.bucket_arn, "${local.bucket_arn}/*"]
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
      # Of several concurrent writers, exactly one must succeed; unconditional writes would overwrite each other.
      {
        Sid       = "NoRingWithoutACondition"
        Effect    = "Deny"
        Principal = "*"
        Action    = "s3:PutObject"
        Resource  = local.object_arn
        Condition = { Null = { "s3:if-match" = "true", "s3:if-none-match" = "true" } }
      },
    ]
  })
}

resource "aws_s3_bucket_policy" "ring" {
  count = local.in_s3 ? 1 : 0

  bucket     = aws_s3_bucket.ring[0].id
  policy     = local.bucket_policy
  depends_on = [aws_s3_bucket_public_access_block.ring]
}

# The ring in DynamoDB.

resource "aws_dynamodb_table" "ring" {
  count = local.in_dynamodb ? 1 : 0

  name                        = var.table_name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  deletion_protection_enabled = !var.allow_store_destruction
  tags                        = var.tags

  attribute {
    name = "pk"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }

  # Only redeemed tokens have this attribute; a ring does not.
  ttl {
    enabled        = true
    attribute_name = "expires"
  }
}

# The policies on the roles.

resource "aws_iam_role_policy" "role" {
  count = var.attach_policies ? length(local.attachments) : 0

  name   = "${local.name}-${replace(local.attachments[count.index].role, "_", "-")}"
  role   = reverse(split("/", local.attachments[count.index].arn))[0]
  policy = local.policies[local.attachments[count.index].role]
}

# The alarms.

locals {
  from_trail = var.cloudtrail_log_group_name != null

  # A refused call has the key's ARN only in its error text.
  decrypts = {
    denied = {
      pattern     = "{ ($.eventSource = \"kms.amazonaws.com\") && ($.eventName = \"Decrypt\") && ($.errorCode = \"AccessDenied*\") && (($.resources[0].ARN = \"${aws_kms_key.this.arn}\") || ($.errorMessage = \"*${aws_kms_key.this.arn}*\")) }"
      threshold   = 1
      description = "A caller without the permission asked KMS to unwrap a data key of the ring ${var.ring_name}, or a server lost that permission."
    }
    made = {
      pattern     = "{ ($.eventSource = \"kms.amazonaws.com\") && ($.eventName = \"Decrypt\") && ($.resources[0].ARN = \"${aws_kms_key.this.arn}\") }"
      threshold   = var.decrypts_alarm_threshold
      description = "Many more decrypts with the key of the ring ${var.ring_name} than the fleet should make."
    }
  }
}

# Uses `count`, because the ARN of a topic that is created in the same run is not known when planning.
resource "aws_cloudwatch_event_rule" "key_changed" {
  count = length(var.alarm_topic_arns) == 0 ? 0 : 1

  name        = substr("${local.name}-key-changed", 0, 64)
  description = "The KMS key of the ring ${var.ring_name} was disabled or scheduled for deletion, or the permissions to use it changed"
  tags        = var.tags
  event_pattern = jsonencode({
    source        = ["aws.kms"]
    "detail-type" = ["AWS API Call via CloudTrail"]
    detail = {
      eventSource = ["kms.amazonaws.com"]
      eventName   = ["CreateGrant", "DisableKey", "DisableKeyRotation", "PutKeyPolicy", "ScheduleKeyDeletion"]
      requestParameters = {
        keyId = [aws_kms_key.this.arn, aws_kms_key.this.key_id]
      }
    }
  })
}

resource "aws_cloudwatch_event_target" "key_changed" {
  count = length(var.alarm_topic_arns)

  rule = aws_cloudwatch_event_rule.key_changed[0].name
  arn  = var.alarm_topic_arns[count.index]
}

resource "aws_cloudwatch_log_metric_filter" "decrypts" {
  for_each = { for kind, decrypts in local.decrypts : kind => decrypts if local.from_trail }

  name           = "${local.name}-decrypts-${each.key}"
  log_group_name = var.cloudtrail_log_group_name
  pattern        = each.value.pattern

  metric_transformation {
    namespace = "Sealring"
    name      = "${var.ring_name}-decrypts-${each.key}"
    value     = "1"
  }
}

resource "aws_cloudwatch_metric_alarm" "decrypts" {
  for_each = { for kind, decrypts in local.decrypts : kind => decrypts if local.from_trail }

  alarm_name          = "${local.name}-decrypts-${each.key}"
  alarm_description   = each.value.description
  namespace           = "Sealring"
  metric_name         = aws_cloudwatch_log_metric_filter.decrypts[each.key].metric_transformation[0].name
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = each.value.threshold
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags
}
