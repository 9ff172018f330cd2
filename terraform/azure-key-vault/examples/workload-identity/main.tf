# A ring for AKS pods whose service accounts are bound to managed identities, with logs and alerts.

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
  description = "The public addresses of the machine that runs Terraform."
  type        = list(string)
}

variable "node_subnet_id" {
  description = "The subnet of the cluster's nodes, with service endpoints for Key Vault and Storage."
  type        = string
}

variable "oidc_issuer_url" {
  description = "The cluster's issuer: its attribute oidc_issuer_url."
  type        = string
}

variable "namespace" {
  description = "The namespace of the service accounts."
  type        = string
  default     = "payments"
}

variable "rescuers_object_id" {
  description = "The object id of the group of people who help after an accident."
  type        = string
}

variable "alert_address" {
  description = "The email address that receives alerts."
  type        = string
}

locals {
  roles = toset(["server", "reader", "rotator"])
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

resource "azurerm_federated_identity_credential" "role" {
  for_each = local.roles

  name                = "payments-${each.key}"
  resource_group_name = azurerm_resource_group.ring.name
  parent_id           = azurerm_user_assigned_identity.role[each.key].id
  issuer              = var.oidc_issuer_url
  subject             = "system:serviceaccount:${var.namespace}:payments-${each.key}"
  audience            = ["api://AzureADTokenExchange"]
}

resource "azurerm_log_analytics_workspace" "logs" {
  name                = "payments-ring"
  resource_group_name = azurerm_resource_group.ring.name
  location            = azurerm_resource_group.ring.location
  retention_in_days   = 90
}

resource "azurerm_monitor_action_group" "alerts" {
  name                = "payments-ring"
  resource_group_name = azurerm_resource_group.ring.name
  short_name          = "ring"

  email_receiver {
    name          = "operators"
    email_address = var.alert_address
  }
}

module "sealring" {
  source = "../.."

  ring_name               = "payments"
  resource_group_name     = azurerm_resource_group.ring.name
  location                = azurerm_resource_group.ring.location
  vault_name              = var.vault_name
  storage_account_name    = var.storage_account_name
  allowed_ip_ranges       = var.allowed_ip_ranges
  allowed_subnet_ids      = [var.node_subnet_id]
  member_principals       = { server = azurerm_user_assigned_identity.role["server"].principal_id }
  reader_principals       = { reader = azurerm_user_assigned_identity.role["reader"].principal_id }
  rotator_principals      = { rotator = azurerm_user_assigned_identity.role["rotator"].principal_id }
  break_glass_principals  = { rescuers = var.rescuers_object_id }
  log_analytics_workspace = azurerm_log_analytics_workspace.logs
  action_group_ids        = [azurerm_monitor_action_group.alerts.id]
}

output "service_accounts" {
  description = "The client id for the annotation of each service account, by name."
  value       = { for role, identity in azurerm_user_assigned_identity.role : "payments-${role}" => identity.client_id }
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
