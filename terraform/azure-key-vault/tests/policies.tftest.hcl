# The permissions; test/terraform in this repository checks their content as data.

mock_provider "azurerm" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  ring_name              = "payments"
  resource_group_name    = "payments"
  location               = "westeurope"
  vault_name             = "payments-ring"
  storage_account_name   = "paymentsring"
  member_principals      = { server = "00000000-0000-4000-8000-0000000000a1", canary = "00000000-0000-4000-8000-0000000000a2" }
  reader_principals      = { server = "00000000-0000-4000-8000-0000000000b1" }
  rotator_principals     = { job = "00000000-0000-4000-8000-0000000000c1" }
  break_glass_principals = { people = "00000000-0000-4000-8000-0000000000d1" }
}

run "roles" {
  command = plan
  assert {
    condition     = keys(output.roles) == ["break_glass", "member", "reader", "rotator"]
    error_message = "There must be permissions for each role."
  }
}
