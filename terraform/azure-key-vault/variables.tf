variable "ring_name" {
  description = "The ring's name: `ringName` of createAzureKeyVaultCodec."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]{1,64}$", var.ring_name))
    error_message = "ring_name must be 1 to 64 letters, digits, dots, underscores or hyphens."
  }
}

variable "resource_group_name" {
  description = "An existing resource group that is used only for this ring, because permissions that are granted on it also apply to the vault and the store."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9._()-]{0,89}[A-Za-z0-9_()-]$", var.resource_group_name))
    error_message = "resource_group_name must be 1 to 90 letters, digits, or any of . _ ( ) -, and not end with a dot."
  }
}

variable "location" {
  description = "The region of the vault, the store and the alerts, such as `westeurope`."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9]{3,40}$", var.location))
    error_message = "location must be the short name of a region: lower-case letters and digits."
  }
}

variable "vault_name" {
  description = "The key vault to create for the ring's keys. Names are global, and stay in use until a deleted vault is purged."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]$", var.vault_name)) && !strcontains(var.vault_name, "--")
    error_message = "vault_name must be 3 to 24 letters, digits or hyphens, begin with a letter, not end with a hyphen, and not have two hyphens together."
  }
}

variable "storage_account_name" {
  description = "The storage account to create for the ring. Names are global."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9]{3,24}$", var.storage_account_name))
    error_message = "storage_account_name must be 3 to 24 lower-case letters or digits."
  }
}

variable "container_name" {
  description = "The container to create in the storage account."
  type        = string
  default     = "sealring"

  validation {
    condition     = can(regex("^[a-z0-9](-?[a-z0-9]){2,62}$", var.container_name)) && length(var.container_name) <= 63
    error_message = "container_name must be 3 to 63 lower-case letters, digits or single hyphens, and neither begin nor end with a hyphen."
  }
}

variable "blob_name" {
  description = "The blob that holds the ring: `blob` of azureBlobRing. If null, `<ring_name>.ring`."
  type        = string
  default     = null

  validation {
    condition     = var.blob_name == null || can(regex("^[A-Za-z0-9._-]*[A-Za-z0-9_-](/[A-Za-z0-9._-]*[A-Za-z0-9_-])*$", var.blob_name))
    error_message = "blob_name must be letters, digits, dots, underscores or hyphens, in parts that are separated by single slashes and do not end with a dot: it goes into conditions, where other characters have a special meaning."
  }
  validation {
    condition     = var.blob_name == null || length(coalesce(var.blob_name, "x")) <= 1024
    error_message = "blob_name must have at most 1024 characters."
  }
}

variable "wrapping_key_name" {
  description = "The RSA key to create, which wraps data keys."
  type        = string
  default     = "ring-wrapping"

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{1,127}$", var.wrapping_key_name))
    error_message = "wrapping_key_name must be 1 to 127 letters, digits or hyphens."
  }
}

variable "signing_key_name" {
  description = "The EC key on P-256 to create, which signs the ring's entries."
  type        = string
  default     = "ring-signing"

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{1,127}$", var.signing_key_name))
    error_message = "signing_key_name must be 1 to 127 letters, digits or hyphens."
  }
  validation {
    condition     = lower(var.signing_key_name) != lower(var.wrapping_key_name)
    error_message = "signing_key_name must differ from wrapping_key_name, because the two keys are of different kinds."
  }
}

variable "key_size" {
  description = "Size of the RSA key in bits. 4096 halves the vault's quota of operations."
  type        = number
  default     = 3072

  validation {
    condition     = contains([3072, 4096], var.key_size)
    error_message = "key_size must be 3072 or 4096."
  }
}

variable "rotation_period_in_days" {
  description = "Days between automatic rotations of the wrapping key. Old versions stay enabled and continue to unwrap."
  type        = number
  default     = 365

  validation {
    condition     = var.rotation_period_in_days >= 30 && var.rotation_period_in_days <= 3650 && floor(var.rotation_period_in_days) == var.rotation_period_in_days
    error_message = "rotation_period_in_days must be a whole number from 30 to 3650."
  }
}

variable "soft_delete_retention_days" {
  description = "Days for which a deleted vault or key can be recovered, and cannot be purged. Cannot be changed later."
  type        = number
  default     = 90

  validation {
    condition     = var.soft_delete_retention_days >= 7 && var.soft_delete_retention_days <= 90 && floor(var.soft_delete_retention_days) == var.soft_delete_retention_days
    error_message = "soft_delete_retention_days must be a whole number from 7 to 90 (the bounds of Key Vault)."
  }
}

variable "allowed_ip_ranges" {
  description = "Public IPv4 addresses or ranges that may reach the vault and the store, including the address of the machine that runs Terraform. Without ranges and subnets, public access is off and only private endpoints work."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for range in var.allowed_ip_ranges : can(regex("^[0-9]+(\\.[0-9]+){3}(/([89]|[12][0-9]|30))?$", range)) && can(cidrhost(strcontains(range, "/") ? range : "${range}/32", 0))])
    error_message = "allowed_ip_ranges must be IPv4 addresses, or ranges from /8 to /30: storage accounts accept no others."
  }
  validation {
    condition     = alltrue([for range in var.allowed_ip_ranges : !can(regex("^(0|10|127|192\\.168|172\\.(1[6-9]|2[0-9]|3[01]))\\.", range))])
    error_message = "allowed_ip_ranges must be public: the firewalls of storage accounts do not accept private addresses."
  }
}

variable "allowed_subnet_ids" {
  description = "Resource ids of subnets that may reach the vault and the store. They need the service endpoints Microsoft.KeyVault and Microsoft.Storage."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.allowed_subnet_ids : can(regex("^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.Network/virtualNetworks/[^/]+/subnets/[^/]+$", id))])
    error_message = "allowed_subnet_ids must be resource ids of subnets."
  }
}

variable "replication" {
  description = "Copies of the store: `LRS`, `ZRS`, `GRS` or `GZRS`. The last two keep a copy in another region, for disaster recovery only, because the copy lags behind."
  type        = string
  default     = "ZRS"

  validation {
    condition     = contains(["LRS", "ZRS", "GRS", "GZRS"], var.replication)
    error_message = "replication must be \"LRS\", \"ZRS\", \"GRS\" or \"GZRS\": the RA- types let clients read a copy that lags behind."
  }
}

variable "keep_noncurrent_days" {
  description = "Minimum number of days for which an overwritten or deleted ring document can be restored."
  type        = number
  default     = 30

  validation {
    condition     = var.keep_noncurrent_days >= 7 && var.keep_noncurrent_days <= 365 && floor(var.keep_noncurrent_days) == var.keep_noncurrent_days
    error_message = "keep_noncurrent_days must be a whole number from 7 to 365 (the upper bound is that of Blob Storage)."
  }
}

variable "administrator_principals" {
  description = "A map from names of your choice to the object ids of administrators, who create and change the keys but may not use them. Default: the identity that runs Terraform."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, id in var.administrator_principals : can(regex("^[A-Za-z0-9_-]{1,64}$", name)) && can(regex("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", id))])
    error_message = "administrator_principals must be object ids (GUIDs), each under a name of letters, digits, underscores or hyphens."
  }
}

variable "member_principals" {
  description = "A map from names of your choice to the object ids of the managed identities or service principals whose servers seal, unseal and rotate."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, id in var.member_principals : can(regex("^[A-Za-z0-9_-]{1,64}$", name)) && can(regex("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", id))])
    error_message = "member_principals must be object ids (GUIDs), each under a name of letters, digits, underscores or hyphens."
  }
}

variable "reader_principals" {
  description = "A map from names of your choice to the object ids of identities whose servers only unseal."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, id in var.reader_principals : can(regex("^[A-Za-z0-9_-]{1,64}$", name)) && can(regex("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", id))])
    error_message = "reader_principals must be object ids (GUIDs), each under a name of letters, digits, underscores or hyphens."
  }
  validation {
    condition     = length(setintersection(values(var.reader_principals), concat(values(var.member_principals), values(var.rotator_principals)))) == 0
    error_message = "A principal in reader_principals must not also be a member or a rotator: it would have more than a reader's permissions."
  }
}

variable "rotator_principals" {
  description = "A map from names of your choice to the object ids of identities whose jobs rotate and revoke."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, id in var.rotator_principals : can(regex("^[A-Za-z0-9_-]{1,64}$", name)) && can(regex("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", id))])
    error_message = "rotator_principals must be object ids (GUIDs), each under a name of letters, digits, underscores or hyphens."
  }
}

variable "break_glass_principals" {
  description = "A map from names of your choice to the object ids of people or groups that, after an accident, enable or recover the keys and restore the ring. They may not use the keys."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, id in var.break_glass_principals : can(regex("^[A-Za-z0-9_-]{1,64}$", name)) && can(regex("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", id))])
    error_message = "break_glass_principals must be object ids (GUIDs), each under a name of letters, digits, underscores or hyphens."
  }
  validation {
    condition     = length(setintersection(values(var.break_glass_principals), concat(values(var.member_principals), values(var.reader_principals), values(var.rotator_principals)))) == 0
    error_message = "A principal in break_glass_principals must not be a member, a reader or a rotator: it may not use the keys."
  }
}

variable "log_analytics_workspace" {
  description = "The Log Analytics workspace for the vault's and the store's logs: the resource itself, or an object with its `id`. If null, there are no logs, and no alerts for the use of the keys."
  type        = object({ id = string })
  default     = null

  validation {
    condition     = var.log_analytics_workspace == null || can(regex("^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.OperationalInsights/workspaces/[^/]+$", var.log_analytics_workspace.id))
    error_message = "log_analytics_workspace must have the resource id of a Log Analytics workspace."
  }
}

variable "action_group_ids" {
  description = "Resource ids of the action groups that receive alerts. Without any, there are no alerts for changes to the vault, the store and the permissions."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.action_group_ids : can(regex("^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/(?i:microsoft\\.insights)/actionGroups/[^/]+$", id))])
    error_message = "action_group_ids must be resource ids of action groups."
  }
  validation {
    condition     = length(var.action_group_ids) <= 5
    error_message = "action_group_ids must have at most 5 items, which is the limit of an alert."
  }
}

variable "unwraps_alert_threshold" {
  description = "The number of unwraps in 30 minutes at which the alert for sudden growth is raised. A member makes about one every 15 minutes, so 1000 members make about 2000."
  type        = number
  default     = 6000

  validation {
    condition     = var.unwraps_alert_threshold >= 1 && floor(var.unwraps_alert_threshold) == var.unwraps_alert_threshold
    error_message = "unwraps_alert_threshold must be a whole number of at least 1."
  }
}

variable "tags" {
  description = "Tags of all resources that can have tags."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(var.tags) <= 15 && alltrue([for key, value in var.tags : can(regex("^[^<>*%&:\\\\?/+]{1,128}$", key)) && length(value) <= 256])
    error_message = "tags must have at most 15 entries, with keys of 1 to 128 characters without any of < > * % & : \\ ? / +, and values of at most 256."
  }
}
