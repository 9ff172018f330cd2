# What the module creates, on a mocked provider. The test only plans: the key cannot be destroyed, not even by a test.

mock_provider "google" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  project_id             = "shop-prod"
  location               = "europe-west1"
  ring_name              = "payments"
  bucket_name            = "payments-sealring"
  member_principals      = ["serviceAccount:member@shop-prod.iam.gserviceaccount.com"]
  reader_principals      = ["serviceAccount:reader@shop-prod.iam.gserviceaccount.com"]
  rotator_principals     = ["serviceAccount:rotator@shop-prod.iam.gserviceaccount.com"]
  break_glass_principals = ["user:ada@example.com"]
}

run "key" {
  command = plan
  assert {
    condition     = google_kms_crypto_key.this.rotation_period == "7776000s"
    error_message = "The key must rotate every 90 days."
  }
  assert {
    condition     = google_kms_crypto_key.this.destroy_scheduled_duration == "2592000s"
    error_message = "A version must take 30 days to be destroyed."
  }
  assert {
    condition = alltrue([
      google_kms_crypto_key.this.purpose == "ENCRYPT_DECRYPT",
      google_kms_crypto_key.this.version_template[0].algorithm == "GOOGLE_SYMMETRIC_ENCRYPTION",
      google_kms_crypto_key.this.version_template[0].protection_level == "HSM",
    ])
    error_message = "The key must be symmetric, and in hardware."
  }
  assert {
    condition     = google_kms_key_ring.this.name == "sealring-payments" && google_kms_crypto_key.this.name == "payments"
    error_message = "Key ring and key must be named after the ring."
  }
  assert {
    condition     = google_kms_key_ring.this.location == "europe-west1" && google_kms_key_ring.this.project == "shop-prod"
    error_message = "The key must be in the given location."
  }
}

run "names_with_dots" {
  command = plan
  variables {
    ring_name = "shop.payments-eu"
  }
  assert {
    condition     = google_kms_key_ring.this.name == "sealring-shop-payments-eu" && google_kms_crypto_key.this.name == "shop-payments-eu"
    error_message = "Cloud KMS has no dots in names."
  }
  assert {
    condition     = google_project_iam_custom_role.this["key_opener"].role_id == "sealring.shop.payments_eu.key_opener"
    error_message = "Custom roles have no hyphens in their ids."
  }
}

run "a_long_name" {
  command = plan
  variables {
    ring_name     = "a123456789b123456789c123456789d123456789e123456789f123456789g123"
    key_ring_name = "sealring"
    key_name      = "ring"
  }
  assert {
    condition     = alltrue([for role in google_project_iam_custom_role.this : length(role.role_id) <= 64 && length(role.title) <= 100])
    error_message = "Ids of custom roles have at most 64 characters, titles 100."
  }
}

run "bucket" {
  command = plan
  assert {
    condition     = google_storage_bucket.ring.uniform_bucket_level_access && google_storage_bucket.ring.public_access_prevention == "enforced"
    error_message = "There must be no ACLs, and nothing public."
  }
  assert {
    condition     = google_storage_bucket.ring.versioning[0].enabled && google_storage_bucket.ring.soft_delete_policy[0].retention_duration_seconds == 604800
    error_message = "The bucket must keep versions, and for 7 days those that were deleted."
  }
  assert {
    condition     = !google_storage_bucket.ring.force_destroy
    error_message = "A bucket with a ring must not be destroyed."
  }
  assert {
    condition     = google_storage_bucket.ring.location == "europe-west1" && google_storage_bucket.ring.storage_class == "STANDARD"
    error_message = "The bucket must be where the key is, of the standard class."
  }
  assert {
    condition = alltrue([
      length(google_storage_bucket.ring.lifecycle_rule) == 1,
      one(one(google_storage_bucket.ring.lifecycle_rule).action).type == "Delete",
      one(one(google_storage_bucket.ring.lifecycle_rule).condition).days_since_noncurrent_time == 30,
      one(one(google_storage_bucket.ring.lifecycle_rule).condition).with_state == "ARCHIVED",
    ])
    error_message = "Old versions, and never the current one, must expire."
  }
}

run "another_location" {
  command = plan
  variables {
    location        = "europe"
    bucket_location = "EU"
  }
  assert {
    condition     = google_storage_bucket.ring.location == "EU" && google_kms_key_ring.this.location == "europe"
    error_message = "Key and bucket must be in their given locations."
  }
}

run "nobody" {
  command = plan
  variables {
    member_principals      = []
    reader_principals      = []
    rotator_principals     = []
    break_glass_principals = []
  }
  assert {
    condition     = length(google_kms_crypto_key_iam_member.this) + length(google_storage_bucket_iam_member.object) + length(google_storage_bucket_iam_member.bucket) == 0
    error_message = "Without principals nothing must be granted."
  }
}

run "no_alerts_unasked" {
  command = plan
  assert {
    condition     = length(google_monitoring_alert_policy.by_entry) + length(google_monitoring_alert_policy.many_decrypts) + length(google_logging_metric.decrypts) + length(google_project_iam_audit_config.kms) == 0
    error_message = "Without a channel there must be no alerts, and no log that costs."
  }
}

run "an_alert_of_changes" {
  command = plan
  variables {
    notification_channels = ["projects/shop-prod/notificationChannels/1234567890"]
  }
  assert {
    condition     = keys(google_monitoring_alert_policy.by_entry) == ["key_changed"] && length(google_monitoring_alert_policy.many_decrypts) == 0
    error_message = "Changes are in a log that is always written, decrypts are not."
  }
  assert {
    condition = alltrue([
      for name in ["UpdateCryptoKeyVersion", "DestroyCryptoKeyVersion", "SetIamPolicy"] :
      can(regex("[(|]${name}[|)]", one(one(google_monitoring_alert_policy.by_entry["key_changed"].conditions).condition_matched_log).filter))
    ])
    error_message = "A disabled version, a scheduled destruction and changed permissions must be reported."
  }
}

run "alerts" {
  command = plan
  variables {
    notification_channels   = ["projects/shop-prod/notificationChannels/1234567890"]
    alert_on_decrypts       = true
    enable_data_access_logs = true
  }
  assert {
    condition     = keys(google_monitoring_alert_policy.by_entry) == ["decrypt_denied", "key_changed"]
    error_message = "A denied decrypt must raise an alert too."
  }
  assert {
    condition = alltrue([
      for alert in concat(values(google_monitoring_alert_policy.by_entry), google_monitoring_alert_policy.many_decrypts) :
      alert.notification_channels == tolist(var.notification_channels)
    ])
    error_message = "The channel must be notified."
  }
  assert {
    condition = alltrue([
      for filter in concat(
        [for alert in google_monitoring_alert_policy.by_entry : one(one(alert.conditions).condition_matched_log).filter],
        google_logging_metric.decrypts[*].filter,
      ) : strcontains(filter, "protoPayload.resourceName=~\"^${output.key_name}(/cryptoKeyVersions/[0-9]+)?$\"")
    ])
    error_message = "Only events of this key must be reported."
  }
  assert {
    condition     = strcontains(one(one(google_monitoring_alert_policy.by_entry["decrypt_denied"].conditions).condition_matched_log).filter, "protoPayload.status.code=7")
    error_message = "Only a denied decrypt must count."
  }
  assert {
    condition = alltrue([
      for condition in google_monitoring_alert_policy.many_decrypts[0].conditions :
      one(condition.condition_threshold).threshold_value == 1000 && strcontains(one(condition.condition_threshold).filter, "logging.googleapis.com/user/sealring/payments/decrypts")
    ])
    error_message = "Many decrypts must raise an alert."
  }
  assert {
    condition     = google_project_iam_audit_config.kms[0].service == "cloudkms.googleapis.com" && one(google_project_iam_audit_config.kms[0].audit_log_config).log_type == "DATA_READ"
    error_message = "The log of decrypts must be turned on, and no other."
  }
}

run "outputs" {
  command = plan
  assert {
    condition     = output.codec_options == { keyId = output.key_name, ringName = "payments" } && output.key_name == google_kms_crypto_key.this.id
    error_message = "codec_options must be options of createGcpKmsCodec."
  }
  assert {
    condition     = output.gcs_ring_options == { bucket = "payments-sealring", object = "payments.ring" }
    error_message = "gcs_ring_options must be options of gcsRing."
  }
  assert {
    condition = output.environment == {
      SEALRING_GCP_KMS_KEY_ID = output.key_name
      SEALRING_GCS_BUCKET     = "payments-sealring"
      SEALRING_GCS_OBJECT     = "payments.ring"
      SEALRING_RING_NAME      = "payments"
      SEALRING_RING_STORE     = "gcs"
    }
    error_message = "The environment must have all settings."
  }
  assert {
    condition     = strcontains(output.environment_file, "\nSEALRING_RING_NAME=payments\nSEALRING_RING_STORE=${output.environment.SEALRING_RING_STORE}\n")
    error_message = "The environment file must have the same variables."
  }
}
