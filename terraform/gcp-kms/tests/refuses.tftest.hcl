# Each run has one bad value, and must be refused because of it.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id  = "shop-prod"
  location    = "europe-west1"
  ring_name   = "payments"
  bucket_name = "payments-sealring"
}

run "refuses_a_project_by_its_number" {
  command = plan
  variables {
    project_id = "123456789012"
  }
  expect_failures = [var.project_id]
}

run "refuses_an_unknown_form_of_location" {
  command = plan
  variables {
    location = "Europe West"
  }
  expect_failures = [var.location]
}

run "refuses_a_ring_name_with_a_space" {
  command = plan
  variables {
    ring_name = "pay ments"
  }
  expect_failures = [var.ring_name]
}

run "refuses_a_ring_name_that_is_empty" {
  command = plan
  variables {
    ring_name = ""
  }
  expect_failures = [var.ring_name]
}

run "refuses_a_key_ring_name_with_a_dot" {
  command = plan
  variables {
    key_ring_name = "seal.ring"
  }
  expect_failures = [var.key_ring_name]
}

run "refuses_no_key_ring_name_for_a_long_ring_name" {
  command = plan
  variables {
    key_ring_name = null
    ring_name     = format("%055d", 0)
  }
  expect_failures = [var.key_ring_name]
}

run "refuses_a_key_name_with_a_slash" {
  command = plan
  variables {
    key_name = "a/b"
  }
  expect_failures = [var.key_name]
}

run "refuses_no_key_name_for_the_longest_ring_name" {
  command = plan
  variables {
    key_name      = null
    ring_name     = format("%064d", 0)
    key_ring_name = "sealring"
  }
  expect_failures = [var.key_name]
}

run "refuses_an_unknown_protection_level" {
  command = plan
  variables {
    protection_level = "EXTERNAL"
  }
  expect_failures = [var.protection_level]
}

run "refuses_a_rotation_each_day" {
  command = plan
  variables {
    rotation_period_in_days = 1
  }
  expect_failures = [var.rotation_period_in_days]
}

run "refuses_a_rotation_in_half_days" {
  command = plan
  variables {
    rotation_period_in_days = 2.5
  }
  expect_failures = [var.rotation_period_in_days]
}

run "refuses_a_destruction_within_a_day" {
  command = plan
  variables {
    destroy_scheduled_days = 1
  }
  expect_failures = [var.destroy_scheduled_days]
}

run "refuses_a_destruction_after_121_days" {
  command = plan
  variables {
    destroy_scheduled_days = 121
  }
  expect_failures = [var.destroy_scheduled_days]
}

run "refuses_a_bucket_name_in_capitals" {
  command = plan
  variables {
    bucket_name = "Payments"
  }
  expect_failures = [var.bucket_name]
}

run "refuses_a_bucket_name_of_google" {
  command = plan
  variables {
    bucket_name = "my-google-bucket"
  }
  expect_failures = [var.bucket_name]
}

run "refuses_a_bucket_location_with_a_slash" {
  command = plan
  variables {
    bucket_location = "eu/west"
  }
  expect_failures = [var.bucket_location]
}

run "refuses_no_bucket_location_for_a_key_that_is_everywhere" {
  command = plan
  variables {
    bucket_location = null
    location        = "global"
  }
  expect_failures = [var.bucket_location]
}

run "refuses_an_object_name_with_a_wildcard" {
  command = plan
  variables {
    object_name = "rings/*"
  }
  expect_failures = [var.object_name]
}

run "refuses_an_object_name_that_ends_the_condition" {
  command = plan
  variables {
    object_name = "a\" || true"
  }
  expect_failures = [var.object_name]
}

run "refuses_an_object_name_with_two_dots" {
  command = plan
  variables {
    object_name = "rings/../payments"
  }
  expect_failures = [var.object_name]
}

run "refuses_an_object_name_that_is_too_long" {
  command = plan
  variables {
    object_name = format("%01025d", 0)
  }
  expect_failures = [var.object_name]
}

run "refuses_old_rings_kept_for_a_day" {
  command = plan
  variables {
    keep_noncurrent_days = 1
  }
  expect_failures = [var.keep_noncurrent_days]
}

run "refuses_everybody_as_member" {
  command = plan
  variables {
    member_principals = ["allUsers"]
  }
  expect_failures = [var.member_principals]
}

run "refuses_every_account_as_member" {
  command = plan
  variables {
    member_principals = ["allAuthenticatedUsers"]
  }
  expect_failures = [var.member_principals]
}

run "refuses_a_whole_pool_as_member" {
  command = plan
  variables {
    member_principals = ["principalSet://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/pool/*"]
  }
  expect_failures = [var.member_principals]
}

run "refuses_a_person_as_member" {
  command = plan
  variables {
    member_principals = ["user:ada@example.com"]
  }
  expect_failures = [var.member_principals]
}

run "refuses_a_domain_as_reader" {
  command = plan
  variables {
    reader_principals = ["domain:example.com"]
  }
  expect_failures = [var.reader_principals]
}

run "refuses_a_reader_that_is_a_member" {
  command = plan
  variables {
    reader_principals = ["serviceAccount:a@shop-prod.iam.gserviceaccount.com"]
    member_principals = ["serviceAccount:a@shop-prod.iam.gserviceaccount.com"]
  }
  expect_failures = [var.reader_principals]
}

run "refuses_a_rotator_by_its_name" {
  command = plan
  variables {
    rotator_principals = ["rotator"]
  }
  expect_failures = [var.rotator_principals]
}

run "refuses_everybody_as_rescuer" {
  command = plan
  variables {
    break_glass_principals = ["allUsers"]
  }
  expect_failures = [var.break_glass_principals]
}

run "refuses_a_domain_as_rescuer" {
  command = plan
  variables {
    break_glass_principals = ["domain:example.com"]
  }
  expect_failures = [var.break_glass_principals]
}

run "refuses_a_rescuer_that_is_a_member" {
  command = plan
  variables {
    break_glass_principals = ["serviceAccount:a@shop-prod.iam.gserviceaccount.com"]
    member_principals      = ["serviceAccount:a@shop-prod.iam.gserviceaccount.com"]
  }
  expect_failures = [var.break_glass_principals]
}

run "refuses_a_channel_by_its_address" {
  command = plan
  variables {
    notification_channels = ["ada@example.com"]
  }
  expect_failures = [var.notification_channels]
}

run "refuses_alerts_that_nobody_is_told_of" {
  command = plan
  variables {
    alert_on_decrypts = true
  }
  expect_failures = [var.alert_on_decrypts]
}

run "refuses_an_alert_at_no_decrypts" {
  command = plan
  variables {
    decrypts_alert_threshold = 0
  }
  expect_failures = [var.decrypts_alert_threshold]
}

run "refuses_a_label_in_capitals" {
  command = plan
  variables {
    labels = { Owner = "me" }
  }
  expect_failures = [var.labels]
}
