output "key_id" {
  description = "The wrapping key's identifier, without a version: `keyId` of createAzureKeyVaultCodec."
  value       = azurerm_key_vault_key.wrapping.versionless_id
}

output "sign_key_id" {
  description = "The identifier of the signing key's version: `signKeyId` of createAzureKeyVaultCodec."
  value       = azurerm_key_vault_key.signing.id
}

output "vault_id" {
  description = "The vault's resource id, for example for a private endpoint."
  value       = azurerm_key_vault.this.id
}

output "storage_account_id" {
  description = "The storage account's resource id."
  value       = azurerm_storage_account.ring.id
}

output "codec_options" {
  description = "Options of createAzureKeyVaultCodec: `keyId`, `signKeyId` and `ringName`."
  value = {
    keyId     = azurerm_key_vault_key.wrapping.versionless_id
    signKeyId = azurerm_key_vault_key.signing.id
    ringName  = var.ring_name
  }
}

output "azure_blob_ring_options" {
  description = "Options of azureBlobRing: `container` and `blob`."
  value = {
    container = local.container_url
    blob      = local.blob_name
  }
}

locals {
  environment = {
    SEALRING_AZURE_BLOB           = local.blob_name
    SEALRING_AZURE_BLOB_CONTAINER = local.container_url
    SEALRING_AZURE_KEY_ID         = azurerm_key_vault_key.wrapping.versionless_id
    SEALRING_AZURE_SIGN_KEY_ID    = azurerm_key_vault_key.signing.id
    SEALRING_RING_NAME            = var.ring_name
    SEALRING_RING_STORE           = "azure-blob"
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

output "roles" {
  description = "The permissions of each role, as data: for `member`, `reader`, `rotator` and `break_glass`, and for `wrapping_key`, `signing_key` and `ring`, the custom role's `role_definition_id`, its `data_actions`, the `scope` and the `condition` to assign it with."
  value = {
    for role, targets in local.permissions : role => {
      for target, right in targets : target => merge(right, {
        role_definition_id = azurerm_role_definition.role["${role}-${target}"].role_definition_resource_id
      })
    }
  }
}
