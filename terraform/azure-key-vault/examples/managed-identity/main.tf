# A ring for servers with managed identities (virtual machines, Container Apps), reached through the firewall.

terraform {
  required_version = ">= 1.9"

  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 4.55"
    }
  }
}

provider "azurerm" {
  # The store has no shared keys.
  storage_use_azuread = true

  features {
    storage {
      # The provider does not read what only the data plane knows.
      data_plane_available = false
    }
  }
}

variable "location" {
  description = "The region of all resources."
  type        = string
  default     = "westeurope"
}

variable "vault_name" {
  description = "A vault name that is not in use yet."
  type        = string
}

variable "storage_account_name" {
  description = "A storage account name that is not in use yet."
  type        = string
}

variable "allowed_ip_ranges" {
  description = "The public addresses of the servers and of the machine that runs Terraform."
  type        = list(string)
}

locals {
  roles = toset(["server", "reader", "rotator", "rescuer"])
}

resource "azurerm_resource_group" "ring" {
  name     = "payments-ring"
  location = var.location
}

resource "azurerm_user_assigned_identity" "role" {
  for_each = local.roles

  name                = "payments-${each.key}"
  resource_group_name = azurerm_resource_group.ring.name
  location            = azurerm_resource_group.ring.location
}

module "sealring" {
  source = "../.."

  ring_name              = "payments"
  resource_group_name    = azurerm_resource_group.ring.name
  location               = azurerm_resource_group.ring.location
  vault_name             = var.vault_name
  storage_account_name   = var.storage_account_name
  allowed_ip_ranges      = var.allowed_ip_ranges
  member_principals      = { server = azurerm_user_assigned_identity.role["server"].principal_id }
  reader_principals      = { reader = azurerm_user_assigned_identity.role["reader"].principal_id }
  rotator_principals     = { rotator = azurerm_user_assigned_identity.role["rotator"].principal_id }
  break_glass_principals = { rescuer = azurerm_user_assigned_identity.role["rescuer"].principal_id }
}

output "codec_options" {
  description = "Options of createAzureKeyVaultCodec."
  value       = module.sealring.codec_options
}

output "ring_options" {
  description = "Options of azureBlobRing."
  value       = module.sealring.azure_blob_ring_options
}

output "environment" {
  description = "The same, as variables for a container."
  value       = module.sealring.environment
}

output "environment_file" {
  description = "The same as an environment file."
  value       = module.sealring.environment_file
}

output "roles" {
  description = "What each role may do."
  value       = module.sealring.roles
}
