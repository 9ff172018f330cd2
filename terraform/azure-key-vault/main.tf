data "azurerm_client_config" "current" {}

locals {
  tenant_id         = data.azurerm_client_config.current.tenant_id
  resource_group_id = "/subscriptions/${data.azurerm_client_config.current.subscription_id}/resourceGroups/${var.resource_group_name}"

  name      = "sealring-${var.ring_name}"
  blob_name = coalesce(var.blob_name, "${var.ring_name}.ring")

  container_url = "${trimsuffix(azurerm_storage_account.ring.primary_blob_endpoint, "/")}/${azurerm_storage_container.ring.name}"

  # Without a range or a subnet, the vault and the account can be reached through private endpoints only.
  is_public = length(var.allowed_ip_ranges) + length(var.allowed_subnet_ids) > 0

  principals = {
    member      = var.member_principals
    reader      = var.reader_principals
    rotator     = var.rotator_principals
    break_glass = var.break_glass_principals
  }

  administrators = length(var.administrator_principals) > 0 ? var.administrator_principals : {
    terraform = data.azurerm_client_config.current.object_id
  }
}

# The permissions. Every role below consists of these actions.

locals {
  keys_of_vault  = "Microsoft.KeyVault/vaults/keys"
  blobs_of_store = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"

  wrapping_actions = {
    member      = ["${local.keys_of_vault}/read", "${local.keys_of_vault}/unwrap/action", "${local.keys_of_vault}/wrap/action"]
    reader      = ["${local.keys_of_vault}/unwrap/action"]
    rotator     = ["${local.keys_of_vault}/read", "${local.keys_of_vault}/unwrap/action", "${local.keys_of_vault}/wrap/action"]
    break_glass = ["${local.keys_of_vault}/read", "${local.keys_of_vault}/recover/action", "${local.keys_of_vault}/update/action"]
  }

  signing_actions = {
    member      = ["${local.keys_of_vault}/read", "${local.keys_of_vault}/sign/action"]
    reader      = ["${local.keys_of_vault}/read"]
    rotator     = ["${local.keys_of_vault}/read", "${local.keys_of_vault}/sign/action"]
    break_glass = ["${local.keys_of_vault}/read", "${local.keys_of_vault}/recover/action", "${local.keys_of_vault}/update/action"]
  }

  ring_actions = {
    member      = ["${local.blobs_of_store}/read", "${local.blobs_of_store}/write"]
    reader      = ["${local.blobs_of_store}/read"]
    rotator     = ["${local.blobs_of_store}/read", "${local.blobs_of_store}/write"]
    break_glass = ["${local.blobs_of_store}/read", "${local.blobs_of_store}/write"]
  }

  # An action that a condition does not name is allowed. Listing blobs is a read, so the condition names it and, as a
  # listing has no path, denies it. The condition of break_glass, which must look for old versions, does not name it.
  ring_conditions = {
    for role in keys(local.principals) : role => join("", [
      "((!(ActionMatches{'${local.blobs_of_store}/read'}${role == "break_glass" ? " AND NOT SubOperationMatches{'Blob.List'}" : ""})",
      " AND !(ActionMatches{'${local.blobs_of_store}/write'}))",
      " OR (@Resource[${local.blobs_of_store}:path] StringEquals '${local.blob_name}'))",
    ])
  }

  # May create and repair keys, but not use, back up, import, export or purge them.
  administrator_actions = [
    "${local.keys_of_vault}/create/action", "${local.keys_of_vault}/delete", "${local.keys_of_vault}/read",
    "${local.keys_of_vault}/recover/action", "${local.keys_of_vault}/rotate/action", "${local.keys_of_vault}/update/action",
    "Microsoft.KeyVault/vaults/keyrotationpolicies/read", "Microsoft.KeyVault/vaults/keyrotationpolicies/write",
  ]

  permissions = {
    for role in keys(local.principals) : role => {
      wrapping_key = {
        scope        = "${azurerm_key_vault.this.id}/keys/${azurerm_key_vault_key.wrapping.name}"
        data_actions = local.wrapping_actions[role]
        condition    = null
      }
      signing_key = {
        scope        = "${azurerm_key_vault.this.id}/keys/${azurerm_key_vault_key.signing.name}"
        data_actions = local.signing_actions[role]
        condition    = null
      }
      ring = {
        scope        = azurerm_storage_container.ring.resource_manager_id
        data_actions = local.ring_actions[role]
        condition    = local.ring_conditions[role]
      }
    }
  }

  definitions = merge([
    for role in keys(local.principals) : {
      for target in ["wrapping_key", "signing_key", "ring"] : "${role}-${target}" => { role = role, target = target }
    }
  ]...)

  assignments = merge(flatten([
    for key, definition in local.definitions : [
      for name, id in local.principals[definition.role] : {
        "${key}-${name}" = merge(definition, { definition = key, principal = id })
      }
    ]
  ])...)
}

# Names of custom roles are unique in a tenant, and names of vaults are unique everywhere.
resource "azurerm_role_definition" "role" {
  for_each = local.definitions

  name              = "Sealring ${var.vault_name}: ${replace(each.value.role, "_", "-")}, ${replace(each.value.target, "_", " ")}"
  description       = "What a ${replace(each.value.role, "_", "-")} of the ring ${var.ring_name} may do with its ${replace(each.value.target, "_", " ")}"
  scope             = local.resource_group_id
  assignable_scopes = [local.resource_group_id]

  permissions {
    data_actions = local.permissions[each.value.role][each.value.target].data_actions
  }
}

resource "azurerm_role_assignment" "role" {
  for_each = local.assignments

  scope              = local.permissions[each.value.role][each.value.target].scope
  role_definition_id = azurerm_role_definition.role[each.value.definition].role_definition_resource_id
  principal_id       = each.value.principal
  principal_type     = each.value.role == "break_glass" ? null : "ServicePrincipal"
  description        = "Sealring ${var.ring_name}"
  condition          = local.permissions[each.value.role][each.value.target].condition
  condition_version  = each.value.target == "ring" ? "2.0" : null
}

resource "azurerm_role_definition" "administrator" {
  name              = "Sealring ${var.vault_name}: administrator"
  description       = "Creates and repairs the keys of the ring ${var.ring_name}, but may not use them"
  scope             = local.resource_group_id
  assignable_scopes = [local.resource_group_id]

  permissions {
    data_actions = local.administrator_actions
  }
}

resource "azurerm_role_assignment" "administrator" {
  for_each = local.administrators

  scope              = azurerm_key_vault.this.id
  role_definition_id = azurerm_role_definition.administrator.role_definition_resource_id
  principal_id       = each.value
  description        = "Sealring ${var.ring_name}"
}

# The vault and its keys.

resource "azurerm_key_vault" "this" {
  name                          = var.vault_name
  resource_group_name           = var.resource_group_name
  location                      = var.location
  tenant_id                     = local.tenant_id
  sku_name                      = "premium"
  rbac_authorization_enabled    = true
  purge_protection_enabled      = true
  soft_delete_retention_days    = var.soft_delete_retention_days
  public_network_access_enabled = local.is_public
  tags                          = var.tags

  network_acls {
    bypass                     = "None"
    default_action             = "Deny"
    ip_rules                   = var.allowed_ip_ranges
    virtual_network_subnet_ids = var.allowed_subnet_ids
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "azurerm_key_vault_key" "wrapping" {
  name         = var.wrapping_key_name
  key_vault_id = azurerm_key_vault.this.id
  key_type     = "RSA-HSM"
  key_size     = var.key_size
  key_opts     = ["unwrapKey", "wrapKey"]
  tags         = var.tags

  # No expiry: an expired key could wrap no new data keys, but would still unwrap those of the ring.
  rotation_policy {
    automatic {
      time_after_creation = "P${var.rotation_period_in_days}D"
    }
  }

  lifecycle {
    prevent_destroy = true
  }

  depends_on = [azurerm_role_assignment.administrator]
}

# The key is not rotated: signKeyId names one version, and servers must know the next one before it signs.
resource "azurerm_key_vault_key" "signing" {
  name         = var.signing_key_name
  key_vault_id = azurerm_key_vault.this.id
  key_type     = "EC-HSM"
  curve        = "P-256"
  key_opts     = ["sign"]
  tags         = var.tags

  lifecycle {
    prevent_destroy = true
  }

  depends_on = [azurerm_role_assignment.administrator]
}

# The ring in Blob Storage.

resource "azurerm_storage_account" "ring" {
  name                              = var.storage_account_name
  resource_group_name               = var.resource_group_name
  location                          = var.location
  account_kind                      = "StorageV2"
  account_tier                      = "Standard"
  account_replication_type          = var.replication
  min_tls_version                   = "TLS1_2"
  https_traffic_only_enabled        = true
  infrastructure_encryption_enabled = true
  shared_access_key_enabled         = false
  default_to_oauth_authentication   = true
  local_user_enabled                = false
  allow_nested_items_to_be_public   = false
  cross_tenant_replication_enabled  = false
  public_network_access_enabled     = local.is_public
  tags                              = var.tags

  network_rules {
    bypass                     = ["None"]
    default_action             = "Deny"
    ip_rules                   = var.allowed_ip_ranges
    virtual_network_subnet_ids = var.allowed_subnet_ids
  }

  blob_properties {
    versioning_enabled = true

    delete_retention_policy {
      days = var.keep_noncurrent_days
    }

    container_delete_retention_policy {
      days = var.keep_noncurrent_days
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "azurerm_storage_container" "ring" {
  name                  = var.container_name
  storage_account_id    = azurerm_storage_account.ring.id
  container_access_type = "private"

  lifecycle {
    prevent_destroy = true
  }
}

resource "azurerm_storage_management_policy" "ring" {
  storage_account_id = azurerm_storage_account.ring.id

  rule {
    name    = "expire-old-rings"
    enabled = true

    filters {
      blob_types   = ["blockBlob"]
      prefix_match = ["${var.container_name}/${local.blob_name}"]
    }

    actions {
      # The current version never expires. The age of a version counts from when it was written, not from when it was
      # overwritten: a ring that was current for a long time is deleted at once, and is then kept as a deleted blob.
      version {
        delete_after_days_since_creation = var.keep_noncurrent_days
      }
    }
  }
}

# The logs.

locals {
  has_logs = var.log_analytics_workspace != null

  logs = {
    vault = { resource = azurerm_key_vault.this.id, categories = ["AuditEvent"] }
    ring  = { resource = "${azurerm_storage_account.ring.id}/blobServices/default", categories = ["StorageDelete", "StorageWrite"] }
  }
}

resource "azurerm_monitor_diagnostic_setting" "logs" {
  for_each = { for source, log in local.logs : source => log if local.has_logs }

  name                           = "${local.name}-${each.key}"
  target_resource_id             = each.value.resource
  log_analytics_workspace_id     = var.log_analytics_workspace.id
  log_analytics_destination_type = "Dedicated"

  dynamic "enabled_log" {
    for_each = each.value.categories
    content {
      category = enabled_log.value
    }
  }
}

# The alerts.

locals {
  # Calls with a disabled key are also answered with 403. The 401 that starts each authentication is not counted.
  key_alerts = {
    key-changed = {
      query       = "AZKVAuditLogs | where OperationName in ('KeyCreate', 'KeyDelete', 'KeyImport', 'KeyPurge', 'KeyRestore', 'KeyRotationPolicySet', 'KeyUpdate') and HttpStatusCode < 300"
      threshold   = 1
      severity    = 1
      description = "A key of the ring ${var.ring_name} was disabled, deleted or changed."
    }
    unwraps-denied = {
      query       = "AZKVAuditLogs | where OperationName in ('KeySign', 'KeyUnwrap') and HttpStatusCode == 403"
      threshold   = 1
      severity    = 1
      description = "A caller without the permission asked the vault to unwrap or sign a data key of the ring ${var.ring_name}, or a server lost that permission, or a key is disabled."
    }
    unwraps-made = {
      query       = "AZKVAuditLogs | where OperationName == 'KeyUnwrap'"
      threshold   = var.unwraps_alert_threshold
      severity    = 2
      description = "Many more unwraps with the key of the ring ${var.ring_name} than the fleet should make."
    }
  }

  activity_alerts = {
    permissions-changed = {
      operation   = "Microsoft.Authorization/roleAssignments/write"
      resource    = null
      description = "A permission was granted in the resource group of the ring ${var.ring_name}."
    }
    store-deleted = {
      operation   = "Microsoft.Storage/storageAccounts/delete"
      resource    = azurerm_storage_account.ring.id
      description = "The storage account of the ring ${var.ring_name} was deleted."
    }
    vault-changed = {
      operation   = "Microsoft.KeyVault/vaults/write"
      resource    = azurerm_key_vault.this.id
      description = "The vault of the ring ${var.ring_name} was changed, for example its network or its authorization."
    }
    vault-deleted = {
      operation   = "Microsoft.KeyVault/vaults/delete"
      resource    = azurerm_key_vault.this.id
      description = "The vault of the ring ${var.ring_name} was deleted."
    }
  }
}

resource "azurerm_monitor_scheduled_query_rules_alert_v2" "key" {
  for_each = { for name, alert in local.key_alerts : name => alert if local.has_logs }

  name                    = "${local.name}-${each.key}"
  description             = each.value.description
  resource_group_name     = var.resource_group_name
  location                = var.location
  scopes                  = [azurerm_key_vault.this.id]
  severity                = each.value.severity
  evaluation_frequency    = "PT5M"
  window_duration         = "PT30M" # An entry of a vault's log can arrive 10 minutes late.
  auto_mitigation_enabled = true
  skip_query_validation   = true # The table does not exist before its first entry.
  tags                    = var.tags

  criteria {
    query                   = each.value.query
    time_aggregation_method = "Count"
    operator                = "GreaterThanOrEqual"
    threshold               = each.value.threshold
  }

  dynamic "action" {
    for_each = length(var.action_group_ids) > 0 ? [var.action_group_ids] : []
    content {
      action_groups = action.value
    }
  }

  depends_on = [azurerm_monitor_diagnostic_setting.logs]
}

resource "azurerm_monitor_activity_log_alert" "activity" {
  for_each = { for name, alert in local.activity_alerts : name => alert if length(var.action_group_ids) > 0 }

  name                = "${local.name}-${each.key}"
  description         = each.value.description
  resource_group_name = var.resource_group_name
  location            = "global"
  scopes              = [local.resource_group_id]
  tags                = var.tags

  criteria {
    category       = "Administrative"
    operation_name = each.value.operation
    resource_id    = each.value.resource
  }

  dynamic "action" {
    for_each = var.action_group_ids
    content {
      action_group_id = action.value
    }
  }
}
