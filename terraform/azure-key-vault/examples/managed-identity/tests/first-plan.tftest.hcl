# The first plan, in which no resource exists yet.

mock_provider "azurerm" {}

variables {
  vault_name           = "payments-ring"
  storage_account_name = "paymentsring"
  allowed_ip_ranges    = ["203.0.113.7"]
}

run "first_plan" {
  command = plan
  assert {
    condition     = output.environment.SEALRING_RING_NAME == "payments"
    error_message = "There must be a plan."
  }
}
