# The first plan, in which no resource exists yet.

mock_provider "azurerm" {}

variables {
  vault_name           = "payments-ring"
  storage_account_name = "paymentsring"
  allowed_ip_ranges    = ["203.0.113.7"]
  node_subnet_id       = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
  oidc_issuer_url      = "https://oidc.example.org/"
  rescuers_object_id   = "00000000-0000-4000-8000-0000000000d1"
  alert_address        = "alerts@example.org"
}

run "first_plan" {
  command = plan
  assert {
    condition     = output.environment.SEALRING_RING_NAME == "payments"
    error_message = "There must be a plan."
  }
}
