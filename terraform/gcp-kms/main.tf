locals {
  key_ring_name = coalesce(var.key_ring_name, "sealring-${replace(var.ring_name, ".", "-")}")
  key_name      = coalesce(var.key_name, replace(var.ring_name, ".", "-"))
  object_name   = coalesce(var.object_name, "${var.ring_name}.ring")

  principals = {
    member      = var.member_principals
    reader      = var.reader_principals
    rotator     = var.rotator_principals
    break_glass = var.break_glass_principals
  }

  # Lists, not maps by principal: principals created in the same run are not known when planning, but their number is.
  key_grants    = flatten([for role, name in local.key_roles : [for who in local.principals[role] : { role = name, who = who }]])
  object_grants = flatten([for role, name in local.object_roles : [for who in local.principals[role] : { role = name, who = who }]])
  bucket_grants = flatten([for role, name in local.bucket_roles : [for who in local.principals[role] : { role = name, who = who }]])
}

# The permissions. The roles are custom ones, because every predefined role grants more than is needed.

locals {
  custom_roles = {
    key_wrapper = {
      title       = "wraps and unwraps data keys"
      permissions = ["cloudkms.cryptoKeyVersions.useToDecrypt", "cloudkms.cryptoKeyVersions.useToEncrypt"]
    }
    key_opener = {
      title       = "unwraps data keys"
      permissions = ["cloudkms.cryptoKeyVersions.useToDecrypt"]
    }
    key_rescuer = {
      title = "enables and restores versions of the key"
      permissions = [
        "cloudkms.cryptoKeyVersions.get", "cloudkms.cryptoKeyVersions.list", "cloudkms.cryptoKeyVersions.restore",
        "cloudkms.cryptoKeyVersions.update", "cloudkms.cryptoKeys.get",
      ]
    }
    ring_writer = {
      title = "reads and writes the ring"
      # Replacing an object deletes its live version.
      permissions = ["storage.objects.create", "storage.objects.delete", "storage.objects.get"]
    }
    ring_reader = {
      title       = "reads the ring"
      permissions = ["storage.objects.get"]
    }
    ring_rescuer = {
      title       = "reads old rings and writes the ring"
      permissions = ["storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.restore"]
    }
    # Without this permission, Cloud Storage answers 403 for a missing ring, and no ring could ever be created.
    ring_lister = {
      title       = "sees whether there is a ring"
      permissions = ["storage.objects.list"]
    }
  }

  key_roles    = { member = "key_wrapper", reader = "key_opener", rotator = "key_wrapper", break_glass = "key_rescuer" }
  object_roles = { member = "ring_writer", reader = "ring_reader", rotator = "ring_writer", break_glass = "ring_rescuer" }
  bucket_roles = { member = "ring_lister", break_glass = "ring_lister" }

  only_the_ring = "resource.name == \"projects/_/buckets/${var.bucket_name}/objects/${local.object_name}\""

  # The id of a custom role has no hyphens, and at most 64 characters.
  role_name   = "sealring.${replace(var.ring_name, "-", "_")}"
  role_prefix = length(local.role_name) <= 51 ? local.role_name : "${substr(local.role_name, 0, 42)}_${substr(sha256(var.ring_name), 0, 8)}"
}

resource "google_project_iam_custom_role" "this" {
  for_each = local.custom_roles

  project     = var.project_id
  role_id     = "${local.role_prefix}.${each.key}"
  title       = substr("Sealring ${var.ring_name}: ${each.value.title}", 0, 100)
  description = "Permissions of the ring ${var.ring_name}, on its key or its bucket"
  permissions = each.value.permissions
}

# The key.

resource "google_kms_key_ring" "this" {
  project  = var.project_id
  location = var.location
  name     = local.key_ring_name

  # Cloud KMS never deletes a key ring; one that Terraform no longer manages would only block its name.
  lifecycle {
    prevent_destroy = true
  }
}

resource "google_kms_crypto_key" "this" {
  key_ring                   = google_kms_key_ring.this.id
  name                       = local.key_name
  purpose                    = "ENCRYPT_DECRYPT"
  rotation_period            = "${var.rotation_period_in_days * 86400}s"
  destroy_scheduled_duration = "${var.destroy_scheduled_days * 86400}s"
  labels                     = var.labels

  version_template {
    algorithm        = "GOOGLE_SYMMETRIC_ENCRYPTION"
    protection_level = var.protection_level
  }

  # Destroying it would destroy every version: the ring, and every token, would be lost.
  lifecycle {
    prevent_destroy = true
  }
}

resource "google_kms_crypto_key_iam_member" "this" {
  count = length(local.key_grants)

  crypto_key_id = google_kms_crypto_key.this.id
  role          = google_project_iam_custom_role.this[local.key_grants[count.index].role].name
  member        = local.key_grants[count.index].who
}

# The ring.

resource "google_storage_bucket" "ring" {
  project                     = var.project_id
  name                        = var.bucket_name
  location                    = coalesce(var.bucket_location, var.location)
  storage_class               = "STANDARD"
  force_destroy               = var.allow_store_destruction
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  labels                      = var.labels

  # The data keys in the object are wrapped already; a second key would only be another key that must work.

  versioning {
    enabled = true
  }

  # This also applies to deleted versions.
  soft_delete_policy {
    retention_duration_seconds = 7 * 86400
  }

  # The current version never expires.
  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      days_since_noncurrent_time = var.keep_noncurrent_days
      with_state                 = "ARCHIVED"
    }
  }
}

resource "google_storage_bucket_iam_member" "object" {
  count = length(local.object_grants)

  bucket = google_storage_bucket.ring.name
  role   = google_project_iam_custom_role.this[local.object_grants[count.index].role].name
  member = local.object_grants[count.index].who

  condition {
    title      = "only-the-ring"
    expression = local.only_the_ring
  }
}

# A listing is a request on the bucket, so a condition on an object would deny it.
resource "google_storage_bucket_iam_member" "bucket" {
  count = length(local.bucket_grants)

  bucket = google_storage_bucket.ring.name
  role   = google_project_iam_custom_role.this[local.bucket_grants[count.index].role].name
  member = local.bucket_grants[count.index].who
}

# The alerts.

locals {
  are_told    = length(var.notification_channels) > 0
  of_decrypts = local.are_told && var.alert_on_decrypts

  # Matches the key and its versions, and no other key whose name begins with the same text.
  of_this_key = "protoPayload.serviceName=\"cloudkms.googleapis.com\" AND protoPayload.resourceName=~\"^${google_kms_crypto_key.this.id}(/cryptoKeyVersions/[0-9]+)?$\""
  decrypts    = "${local.of_this_key} AND protoPayload.methodName=~\"(^|[.])Decrypt$\""

  # Alerts that a single entry of the log raises.
  by_entry = {
    key_changed = {
      wanted  = local.are_told
      title   = "key disabled, scheduled for destruction, or changed"
      filter  = "${local.of_this_key} AND protoPayload.methodName=~\"(^|[.])(DestroyCryptoKeyVersion|DeleteCryptoKeyVersion|DeleteCryptoKey|UpdateCryptoKeyVersion|UpdateCryptoKeyPrimaryVersion|UpdateCryptoKey|SetIamPolicy)$\""
      meaning = "A version of the key of the ring ${var.ring_name} was enabled, disabled or scheduled for destruction, or the rotation or the permissions of the key were changed."
    }
    decrypt_denied = {
      wanted  = local.of_decrypts
      title   = "decrypt denied"
      filter  = "${local.decrypts} AND protoPayload.status.code=7"
      meaning = "A caller without the permission to decrypt asked Cloud KMS to unwrap a data key of the ring ${var.ring_name}, or a server lost that permission."
    }
  }
}

resource "google_project_iam_audit_config" "kms" {
  count = var.enable_data_access_logs ? 1 : 0

  project = var.project_id
  service = "cloudkms.googleapis.com"

  audit_log_config {
    log_type = "DATA_READ"
  }
}

resource "google_monitoring_alert_policy" "by_entry" {
  for_each = { for kind, alert in local.by_entry : kind => alert if alert.wanted }

  project               = var.project_id
  display_name          = "Sealring ${var.ring_name}: ${each.value.title}"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = each.value.title
    condition_matched_log {
      filter = each.value.filter
    }
  }

  alert_strategy {
    notification_rate_limit {
      period = "300s"
    }
  }

  documentation {
    content = each.value.meaning
  }
}

resource "google_logging_metric" "decrypts" {
  count = local.of_decrypts ? 1 : 0

  project     = var.project_id
  name        = "sealring/${var.ring_name}/decrypts"
  description = "Decrypts with the key of the ring ${var.ring_name}, refused ones included"
  filter      = local.decrypts

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"
  }
}

resource "google_monitoring_alert_policy" "many_decrypts" {
  count = local.of_decrypts ? 1 : 0

  project               = var.project_id
  display_name          = "Sealring ${var.ring_name}: many decrypts"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  # A log entry names either the key or the version that was used, so each has a condition.
  dynamic "conditions" {
    for_each = ["cloudkms_cryptokey", "cloudkms_cryptokeyversion"]
    content {
      display_name = "many decrypts (${conditions.value})"
      condition_threshold {
        filter          = "metric.type = \"logging.googleapis.com/user/${google_logging_metric.decrypts[0].name}\" AND resource.type = \"${conditions.value}\""
        comparison      = "COMPARISON_GT"
        threshold_value = var.decrypts_alert_threshold
        duration        = "0s"

        aggregations {
          alignment_period     = "300s"
          per_series_aligner   = "ALIGN_DELTA"
          cross_series_reducer = "REDUCE_SUM"
        }
      }
    }
  }

  documentation {
    content = "Many more decrypts with the key of the ring ${var.ring_name} than the fleet should make."
  }
}
