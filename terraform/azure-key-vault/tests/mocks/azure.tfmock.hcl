mock_data "azurerm_client_config" {
  defaults = {
    object_id       = "00000000-0000-4000-8000-00000000000a"
    subscription_id = "00000000-0000-4000-8000-000000000001"
    tenant_id       = "00000000-0000-4000-8000-000000000002"
  }
}
mock_resource "azurerm_key_vault" {
  defaults = {
    id        = "/subscriptions/00000000-0000-4000-8000-000000000001/resourceGroups/payments/providers/Microsoft.KeyVault/vaults/payments-ring"
    vault_uri = "https://payments-ring.vault.azure.net/"
  }
}
mock_resource "azurerm_storage_account" {
  defaults = {
    id                    = "/subscriptions/00000000-0000-4000-8000-000000000001/resourceGroups/payments/providers/Microsoft.Storage/storageAccounts/paymentsring"
    primary_blob_endpoint = "https://paymentsring.blob.core.windows.net/"
  }
}
mock_resource "azurerm_storage_container" {
  defaults = {
    resource_manager_id = "/subscriptions/00000000-0000-4000-8000-000000000001/resourceGroups/payments/providers/Microsoft.Storage/storageAccounts/paymentsring/blobServices/default/containers/sealring"
  }
}
mock_resource "azurerm_role_definition" {
  defaults = {
    role_definition_resource_id = "/subscriptions/00000000-0000-4000-8000-000000000001/providers/Microsoft.Authorization/roleDefinitions/00000000-0000-4000-8000-00000000000d"
  }
}
override_resource {
  target = azurerm_key_vault_key.wrapping
  values = {
    id                      = "https://payments-ring.vault.azure.net/keys/ring-wrapping/0123456789abcdef0123456789abcdef"
    versionless_id          = "https://payments-ring.vault.azure.net/keys/ring-wrapping"
    resource_versionless_id = "/subscriptions/00000000-0000-4000-8000-000000000001/resourceGroups/payments/providers/Microsoft.KeyVault/vaults/payments-ring/keys/ring-wrapping"
  }
}
override_resource {
  target = azurerm_key_vault_key.signing
  values = {
    id                      = "https://payments-ring.vault.azure.net/keys/ring-signing/fedcba9876543210fedcba9876543210"
    versionless_id          = "https://payments-ring.vault.azure.net/keys/ring-signing"
    resource_versionless_id = "/subscriptions/00000000-0000-4000-8000-000000000001/resourceGroups/payments/providers/Microsoft.KeyVault/vaults/payments-ring/keys/ring-signing"
  }
}
