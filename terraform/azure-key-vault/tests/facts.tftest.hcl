# What the module creates, on a mocked provider. Plans only: Terraform refuses to destroy what it would create.

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

run "vault" {
  command = plan
  assert {
    condition     = azurerm_key_vault.this.rbac_authorization_enabled && azurerm_key_vault.this.sku_name == "premium"
    error_message = "The vault must be authorized by roles, and have HSM keys."
  }
  assert {
    condition     = azurerm_key_vault.this.purge_protection_enabled && azurerm_key_vault.this.soft_delete_retention_days == 90
    error_message = "Nobody may purge the vault within 90 days."
  }
  assert {
    condition     = !azurerm_key_vault.this.public_network_access_enabled
    error_message = "Without a range or a subnet the vault must have no public access."
  }
  assert {
    condition     = azurerm_key_vault.this.network_acls[0].default_action == "Deny" && azurerm_key_vault.this.network_acls[0].bypass == "None"
    error_message = "The firewall must have no exceptions."
  }
}

run "keys" {
  command = plan
  assert {
    condition     = azurerm_key_vault_key.wrapping.key_type == "RSA-HSM" && azurerm_key_vault_key.wrapping.key_size == 3072
    error_message = "The wrapping key must be an RSA key in an HSM."
  }
  assert {
    condition     = toset(azurerm_key_vault_key.wrapping.key_opts) == toset(["unwrapKey", "wrapKey"])
    error_message = "The wrapping key must wrap and unwrap, and nothing else."
  }
  assert {
    condition     = azurerm_key_vault_key.wrapping.rotation_policy[0].automatic[0].time_after_creation == "P365D"
    error_message = "The wrapping key must rotate every year."
  }
  assert {
    condition     = azurerm_key_vault_key.wrapping.rotation_policy[0].expire_after == null && azurerm_key_vault_key.wrapping.expiration_date == null
    error_message = "The wrapping key must not expire."
  }
  assert {
    condition     = azurerm_key_vault_key.signing.key_type == "EC-HSM" && azurerm_key_vault_key.signing.curve == "P-256"
    error_message = "The signing key must be an EC key on P-256 in an HSM."
  }
  assert {
    condition     = azurerm_key_vault_key.signing.key_opts == tolist(["sign"]) && length(azurerm_key_vault_key.signing.rotation_policy) == 0
    error_message = "The signing key must sign, nothing else, and not rotate."
  }
}

run "store" {
  command = plan
  assert {
    condition = alltrue([
      !azurerm_storage_account.ring.shared_access_key_enabled,
      !azurerm_storage_account.ring.local_user_enabled,
      azurerm_storage_account.ring.default_to_oauth_authentication,
    ])
    error_message = "Only identities of Entra must be allowed."
  }
  assert {
    condition = alltrue([
      azurerm_storage_account.ring.min_tls_version == "TLS1_2",
      azurerm_storage_account.ring.https_traffic_only_enabled,
      azurerm_storage_account.ring.infrastructure_encryption_enabled,
    ])
    error_message = "The store must be encrypted twice, and in transit."
  }
  assert {
    condition = alltrue([
      !azurerm_storage_account.ring.allow_nested_items_to_be_public,
      !azurerm_storage_account.ring.cross_tenant_replication_enabled,
      !azurerm_storage_account.ring.public_network_access_enabled,
      azurerm_storage_account.ring.network_rules[0].default_action == "Deny",
      azurerm_storage_account.ring.network_rules[0].bypass == toset(["None"]),
      azurerm_storage_container.ring.container_access_type == "private",
    ])
    error_message = "The store must be private."
  }
  assert {
    condition = alltrue([
      azurerm_storage_account.ring.blob_properties[0].versioning_enabled,
      azurerm_storage_account.ring.blob_properties[0].delete_retention_policy[0].days == 30,
      azurerm_storage_account.ring.blob_properties[0].container_delete_retention_policy[0].days == 30,
    ])
    error_message = "The store must keep what was overwritten or deleted."
  }
  assert {
    condition = alltrue([
      length(azurerm_storage_management_policy.ring.rule) == 1,
      azurerm_storage_management_policy.ring.rule[0].enabled,
      azurerm_storage_management_policy.ring.rule[0].filters[0].prefix_match == toset(["sealring/payments.ring"]),
      azurerm_storage_management_policy.ring.rule[0].actions[0].version[0].delete_after_days_since_creation == 30,
      length(azurerm_storage_management_policy.ring.rule[0].actions[0].base_blob) == 0,
    ])
    error_message = "Old versions, and never the current one, must expire."
  }
}

run "firewall" {
  command = plan
  variables {
    allowed_ip_ranges  = ["203.0.113.7", "198.51.100.0/24"]
    allowed_subnet_ids = ["/subscriptions/s/resourceGroups/r/providers/Microsoft.Network/virtualNetworks/v/subnets/n"]
  }
  assert {
    condition     = azurerm_key_vault.this.public_network_access_enabled && azurerm_storage_account.ring.public_network_access_enabled
    error_message = "A range must be allowed."
  }
  assert {
    condition     = azurerm_key_vault.this.network_acls[0].ip_rules == toset(var.allowed_ip_ranges) && azurerm_storage_account.ring.network_rules[0].ip_rules == toset(var.allowed_ip_ranges)
    error_message = "Only the given ranges must be allowed."
  }
  assert {
    condition     = azurerm_key_vault.this.network_acls[0].virtual_network_subnet_ids == toset(var.allowed_subnet_ids) && azurerm_storage_account.ring.network_rules[0].virtual_network_subnet_ids == toset(var.allowed_subnet_ids)
    error_message = "Only the given subnets must be allowed."
  }
  assert {
    condition     = azurerm_key_vault.this.network_acls[0].default_action == "Deny" && azurerm_storage_account.ring.network_rules[0].default_action == "Deny"
    error_message = "All others must be refused."
  }
}

run "assignments" {
  command = plan
  assert {
    condition = { for key, each in azurerm_role_assignment.role : key => each.principal_id } == merge(
      { for target in ["wrapping_key", "signing_key", "ring"] : "member-${target}-server" => var.member_principals.server },
      { for target in ["wrapping_key", "signing_key", "ring"] : "member-${target}-canary" => var.member_principals.canary },
      { for target in ["wrapping_key", "signing_key", "ring"] : "reader-${target}-server" => var.reader_principals.server },
      { for target in ["wrapping_key", "signing_key", "ring"] : "rotator-${target}-job" => var.rotator_principals.job },
      { for target in ["wrapping_key", "signing_key", "ring"] : "break_glass-${target}-people" => var.break_glass_principals.people },
    )
    error_message = "Each principal must have the permissions of its role, on three resources."
  }
  assert {
    condition = alltrue([
      for key, each in azurerm_role_assignment.role :
      each.scope == output.roles[split("-", key)[0]][split("-", key)[1]].scope
    ])
    error_message = "Permissions must be on one key or the container."
  }
  assert {
    condition = alltrue([
      for key, each in azurerm_role_assignment.role :
      each.condition == output.roles[split("-", key)[0]][split("-", key)[1]].condition
    ])
    error_message = "Permissions on the container must be bound to the blob."
  }
  assert {
    condition     = alltrue([for key, each in azurerm_role_assignment.role : each.condition_version == "2.0" if strcontains(key, "-ring-")])
    error_message = "A condition must say the version of its language."
  }
  assert {
    condition     = alltrue([for key, each in azurerm_role_assignment.role : each.principal_type == "ServicePrincipal" if !startswith(key, "break_glass-")])
    error_message = "Servers are service principals: Azure then waits for those that were just made."
  }
  assert {
    condition     = { for name, each in azurerm_role_assignment.administrator : name => each.principal_id } == { terraform = "00000000-0000-4000-8000-00000000000a" }
    error_message = "The identity that applies must administer the keys, if no other is named."
  }
}

run "administrators" {
  command = plan
  variables {
    administrator_principals = { operators = "00000000-0000-4000-8000-0000000000e1" }
  }
  assert {
    condition     = tomap({ for name, each in azurerm_role_assignment.administrator : name => each.principal_id }) == var.administrator_principals
    error_message = "Only the named identities may administer the keys."
  }
}

run "nobody" {
  command = plan
  variables {
    member_principals      = {}
    reader_principals      = {}
    rotator_principals     = {}
    break_glass_principals = {}
  }
  assert {
    condition     = length(azurerm_role_assignment.role) == 0 && length(azurerm_role_definition.role) == 12
    error_message = "There must be roles, without assignments."
  }
}

run "no_alerts_unasked" {
  command = plan
  assert {
    condition     = length(azurerm_monitor_diagnostic_setting.logs) + length(azurerm_monitor_scheduled_query_rules_alert_v2.key) + length(azurerm_monitor_activity_log_alert.activity) == 0
    error_message = "Without a workspace and an action group there must be no logs and no alerts."
  }
}

run "alerts" {
  command = plan
  variables {
    log_analytics_workspace = { id = "/subscriptions/s/resourceGroups/r/providers/Microsoft.OperationalInsights/workspaces/w" }
    action_group_ids        = ["/subscriptions/s/resourceGroups/r/providers/Microsoft.Insights/actionGroups/g"]
  }
  assert {
    condition = {
      for source, setting in azurerm_monitor_diagnostic_setting.logs : source => toset([for log in setting.enabled_log : log.category])
    } == { ring = toset(["StorageDelete", "StorageWrite"]), vault = toset(["AuditEvent"]) }
    error_message = "Use of the keys, and writes of the ring, must be logged."
  }
  assert {
    condition     = alltrue([for setting in azurerm_monitor_diagnostic_setting.logs : setting.log_analytics_destination_type == "Dedicated"])
    error_message = "The logs must be in the tables that the alerts query."
  }
  assert {
    condition     = { for name, alert in azurerm_monitor_scheduled_query_rules_alert_v2.key : name => alert.criteria[0].threshold } == { key-changed = 1, unwraps-denied = 1, unwraps-made = 6000 }
    error_message = "A change, a denied unwrap, and many unwraps must raise an alert."
  }
  assert {
    condition = alltrue([
      for operation in ["KeyDelete", "KeyPurge", "KeyUpdate"] :
      strcontains(azurerm_monitor_scheduled_query_rules_alert_v2.key["key-changed"].criteria[0].query, "'${operation}'")
    ])
    error_message = "A disabled, deleted or purged key must be reported."
  }
  assert {
    condition     = endswith(azurerm_monitor_scheduled_query_rules_alert_v2.key["unwraps-denied"].criteria[0].query, "in ('KeySign', 'KeyUnwrap') and HttpStatusCode == 403")
    error_message = "Denied unwraps must be reported."
  }
  assert {
    condition     = endswith(azurerm_monitor_scheduled_query_rules_alert_v2.key["unwraps-made"].criteria[0].query, "== 'KeyUnwrap'")
    error_message = "Unwraps must be counted."
  }
  assert {
    condition     = alltrue([for alert in azurerm_monitor_scheduled_query_rules_alert_v2.key : alert.scopes == tolist([output.vault_id])])
    error_message = "Only this vault counts."
  }
  assert {
    condition     = alltrue([for alert in azurerm_monitor_scheduled_query_rules_alert_v2.key : alert.action[0].action_groups == tolist(var.action_group_ids)])
    error_message = "The action group must be notified."
  }
  assert {
    condition = { for name, alert in azurerm_monitor_activity_log_alert.activity : name => one(alert.criteria).operation_name } == {
      permissions-changed = "Microsoft.Authorization/roleAssignments/write"
      store-deleted       = "Microsoft.Storage/storageAccounts/delete"
      vault-changed       = "Microsoft.KeyVault/vaults/write"
      vault-deleted       = "Microsoft.KeyVault/vaults/delete"
    }
    error_message = "Changes of vault, store and permissions must be reported."
  }
  assert {
    condition = { for name, alert in azurerm_monitor_activity_log_alert.activity : name => one(alert.criteria).resource_id if one(alert.criteria).resource_id != null } == {
      store-deleted = output.storage_account_id
      vault-changed = output.vault_id
      vault-deleted = output.vault_id
    }
    error_message = "Only this vault and this store count, and all permissions."
  }
  assert {
    condition     = alltrue([for alert in azurerm_monitor_activity_log_alert.activity : one(alert.action).action_group_id == var.action_group_ids[0]])
    error_message = "The action group must be notified."
  }
}

run "outputs" {
  command = plan
  assert {
    condition = output.codec_options == {
      keyId     = azurerm_key_vault_key.wrapping.versionless_id
      signKeyId = azurerm_key_vault_key.signing.id
      ringName  = "payments"
    }
    error_message = "codec_options must be options of createAzureKeyVaultCodec."
  }
  assert {
    condition     = output.azure_blob_ring_options == { container = "https://paymentsring.blob.core.windows.net/sealring", blob = "payments.ring" }
    error_message = "azure_blob_ring_options must be options of azureBlobRing."
  }
  assert {
    condition = output.environment == {
      SEALRING_AZURE_BLOB           = output.azure_blob_ring_options.blob
      SEALRING_AZURE_BLOB_CONTAINER = output.azure_blob_ring_options.container
      SEALRING_AZURE_KEY_ID         = output.codec_options.keyId
      SEALRING_AZURE_SIGN_KEY_ID    = output.codec_options.signKeyId
      SEALRING_RING_NAME            = "payments"
      SEALRING_RING_STORE           = "azure-blob"
    }
    error_message = "The environment must have all settings."
  }
  assert {
    condition     = strcontains(output.environment_file, "\nSEALRING_RING_NAME=payments\nSEALRING_RING_STORE=${output.environment.SEALRING_RING_STORE}\n")
    error_message = "The environment file must have the same variables."
  }
  assert {
    condition     = output.key_id == output.codec_options.keyId && output.sign_key_id == output.codec_options.signKeyId
    error_message = "The keys of the outputs must be the keys of the codec."
  }
}
