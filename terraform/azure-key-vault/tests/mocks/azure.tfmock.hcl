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
# Each gets its own made-up ids, so that a wrong reference is found.
mock_resource "azurerm_key_vault_key" {
  defaults = {}
}
mock_resource "azurerm_role_definition" {
  defaults = {}
}
