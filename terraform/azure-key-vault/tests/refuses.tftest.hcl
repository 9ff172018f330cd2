# Each run has one bad value, and must be refused because of it.

mock_provider "azurerm" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  ring_name            = "payments"
  resource_group_name  = "payments"
  location             = "westeurope"
  vault_name           = "payments-ring"
  storage_account_name = "paymentsring"
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

run "refuses_a_resource_group_by_its_id" {
  command = plan
  variables {
    resource_group_name = "/subscriptions/s/resourceGroups/payments"
  }
  expect_failures = [var.resource_group_name]
}

run "refuses_a_location_by_its_display_name" {
  command = plan
  variables {
    location = "West Europe"
  }
  expect_failures = [var.location]
}

run "refuses_a_vault_name_with_a_dot" {
  command = plan
  variables {
    vault_name = "payments.ring"
  }
  expect_failures = [var.vault_name]
}

run "refuses_a_vault_name_with_two_hyphens" {
  command = plan
  variables {
    vault_name = "payments--ring"
  }
  expect_failures = [var.vault_name]
}

run "refuses_a_storage_account_name_with_a_hyphen" {
  command = plan
  variables {
    storage_account_name = "payments-ring"
  }
  expect_failures = [var.storage_account_name]
}

run "refuses_a_container_name_in_capitals" {
  command = plan
  variables {
    container_name = "Sealring"
  }
  expect_failures = [var.container_name]
}

run "refuses_a_container_name_that_is_too_long" {
  command = plan
  variables {
    container_name = format("%064d", 0)
  }
  expect_failures = [var.container_name]
}

run "refuses_a_blob_name_with_a_quote" {
  command = plan
  variables {
    blob_name = "payments' OR '1"
  }
  expect_failures = [var.blob_name]
}

run "refuses_a_blob_name_with_a_wildcard" {
  command = plan
  variables {
    blob_name = "rings/*"
  }
  expect_failures = [var.blob_name]
}

run "refuses_a_blob_name_that_leads_elsewhere" {
  command = plan
  variables {
    blob_name = "rings/../other.ring"
  }
  expect_failures = [var.blob_name]
}

run "refuses_a_blob_name_that_is_too_long" {
  command = plan
  variables {
    blob_name = format("%01025d", 0)
  }
  expect_failures = [var.blob_name]
}

run "refuses_a_wrapping_key_name_with_a_slash" {
  command = plan
  variables {
    wrapping_key_name = "ring/wrapping"
  }
  expect_failures = [var.wrapping_key_name]
}

run "refuses_a_signing_key_name_with_an_underscore" {
  command = plan
  variables {
    signing_key_name = "ring_signing"
  }
  expect_failures = [var.signing_key_name]
}

run "refuses_one_key_for_both" {
  command = plan
  variables {
    signing_key_name = "ring-wrapping"
  }
  expect_failures = [var.signing_key_name]
}

run "refuses_a_key_of_2048_bits" {
  command = plan
  variables {
    key_size = 2048
  }
  expect_failures = [var.key_size]
}

run "refuses_a_rotation_each_week" {
  command = plan
  variables {
    rotation_period_in_days = 7
  }
  expect_failures = [var.rotation_period_in_days]
}

run "refuses_a_retention_of_six_days" {
  command = plan
  variables {
    soft_delete_retention_days = 6
  }
  expect_failures = [var.soft_delete_retention_days]
}

run "refuses_a_retention_of_91_days" {
  command = plan
  variables {
    soft_delete_retention_days = 91
  }
  expect_failures = [var.soft_delete_retention_days]
}

run "refuses_a_retention_of_half_days" {
  command = plan
  variables {
    soft_delete_retention_days = 7.5
  }
  expect_failures = [var.soft_delete_retention_days]
}

run "refuses_everybody_on_the_network" {
  command = plan
  variables {
    allowed_ip_ranges = ["0.0.0.0/0"]
  }
  expect_failures = [var.allowed_ip_ranges]
}

run "refuses_an_address_that_is_none" {
  command = plan
  variables {
    allowed_ip_ranges = ["203.0.113.256"]
  }
  expect_failures = [var.allowed_ip_ranges]
}

run "refuses_a_range_that_is_too_small" {
  command = plan
  variables {
    allowed_ip_ranges = ["203.0.113.0/31"]
  }
  expect_failures = [var.allowed_ip_ranges]
}

run "refuses_a_private_address" {
  command = plan
  variables {
    allowed_ip_ranges = ["10.0.0.0/16"]
  }
  expect_failures = [var.allowed_ip_ranges]
}

run "refuses_a_subnet_by_its_name" {
  command = plan
  variables {
    allowed_subnet_ids = ["servers"]
  }
  expect_failures = [var.allowed_subnet_ids]
}

run "refuses_a_copy_that_can_be_read" {
  command = plan
  variables {
    replication = "RAGRS"
  }
  expect_failures = [var.replication]
}

run "refuses_old_rings_kept_for_a_day" {
  command = plan
  variables {
    keep_noncurrent_days = 1
  }
  expect_failures = [var.keep_noncurrent_days]
}

run "refuses_an_administrator_by_name" {
  command = plan
  variables {
    administrator_principals = { me = "me@example.org" }
  }
  expect_failures = [var.administrator_principals]
}

run "refuses_a_member_by_its_resource_id" {
  command = plan
  variables {
    member_principals = { server = "/subscriptions/s/resourceGroups/r/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i" }
  }
  expect_failures = [var.member_principals]
}

run "refuses_a_member_under_a_name_with_a_space" {
  command = plan
  variables {
    member_principals = { "my server" = "00000000-0000-4000-8000-0000000000a1" }
  }
  expect_failures = [var.member_principals]
}

run "refuses_everybody_as_reader" {
  command = plan
  variables {
    reader_principals = { all = "*" }
  }
  expect_failures = [var.reader_principals]
}

run "refuses_a_reader_that_is_a_member" {
  command = plan
  variables {
    member_principals = { server = "00000000-0000-4000-8000-0000000000a1" }
    reader_principals = { server = "00000000-0000-4000-8000-0000000000a1" }
  }
  expect_failures = [var.reader_principals]
}

run "refuses_a_rotator_by_its_name" {
  command = plan
  variables {
    rotator_principals = { job = "rotator" }
  }
  expect_failures = [var.rotator_principals]
}

run "refuses_a_break_glass_principal_by_its_name" {
  command = plan
  variables {
    break_glass_principals = { people = "rescuers" }
  }
  expect_failures = [var.break_glass_principals]
}

run "refuses_a_break_glass_principal_that_is_a_member" {
  command = plan
  variables {
    break_glass_principals = { people = "00000000-0000-4000-8000-0000000000a1" }
    member_principals      = { server = "00000000-0000-4000-8000-0000000000a1" }
  }
  expect_failures = [var.break_glass_principals]
}

run "refuses_a_workspace_by_its_name" {
  command = plan
  variables {
    log_analytics_workspace = { id = "logs" }
  }
  expect_failures = [var.log_analytics_workspace]
}

run "refuses_an_action_group_by_its_name" {
  command = plan
  variables {
    action_group_ids = ["alerts"]
  }
  expect_failures = [var.action_group_ids]
}

run "refuses_six_action_groups" {
  command = plan
  variables {
    action_group_ids = [for n in range(6) : "/subscriptions/s/resourceGroups/r/providers/Microsoft.Insights/actionGroups/g${n}"]
  }
  expect_failures = [var.action_group_ids]
}

run "refuses_an_alert_at_no_unwraps" {
  command = plan
  variables {
    unwraps_alert_threshold = 0
  }
  expect_failures = [var.unwraps_alert_threshold]
}

run "refuses_a_tag_with_a_slash" {
  command = plan
  variables {
    tags = { "a/b" = "c" }
  }
  expect_failures = [var.tags]
}
