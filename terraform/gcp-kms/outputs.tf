output "key_name" {
  description = "The key's name: `keyId` of createGcpKmsCodec."
  value       = google_kms_crypto_key.this.id
}

output "codec_options" {
  description = "Options of createGcpKmsCodec: `keyId` and `ringName`."
  value = {
    keyId    = google_kms_crypto_key.this.id
    ringName = var.ring_name
  }
}

output "gcs_ring_options" {
  description = "Options of gcsRing: `bucket` and `object`."
  value = {
    bucket = google_storage_bucket.ring.name
    object = local.object_name
  }
}

locals {
  environment = {
    SEALRING_GCP_KMS_KEY_ID = google_kms_crypto_key.this.id
    SEALRING_GCS_BUCKET     = google_storage_bucket.ring.name
    SEALRING_GCS_OBJECT     = local.object_name
    SEALRING_RING_NAME      = var.ring_name
    SEALRING_RING_STORE     = "gcs"
  }
}

output "environment" {
  description = "The same options for containers, as a map of environment variables. No secrets."
  value       = local.environment
}

output "environment_file" {
  description = "The same variables as the text of an environment file, one NAME=value per line. No secrets."
  value       = join("", [for name, value in local.environment : "${name}=${value}\n"])
}

output "grants" {
  description = "The grants of each role, as data: `role` is a custom role, `permissions` is its list, `on` is `key`, `object` (with `condition`) or `bucket`. Use this output to make the grants yourself."
  value = {
    for role in keys(local.principals) : role => concat(
      [{
        on          = "key"
        role        = google_project_iam_custom_role.this[local.key_roles[role]].name
        permissions = local.custom_roles[local.key_roles[role]].permissions
        condition   = null
      }],
      [{
        on          = "object"
        role        = google_project_iam_custom_role.this[local.object_roles[role]].name
        permissions = local.custom_roles[local.object_roles[role]].permissions
        condition   = local.only_the_ring
      }],
      [for name in [for each, name in local.bucket_roles : name if each == role] : {
        on          = "bucket"
        role        = google_project_iam_custom_role.this[name].name
        permissions = local.custom_roles[name].permissions
        condition   = null
      }],
    )
  }
}
