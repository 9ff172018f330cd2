variable "project_id" {
  description = "The project of all resources: its id, not its number."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id must be the id of a project: 6 to 30 lower-case letters, digits or hyphens, beginning with a letter."
  }
}

variable "location" {
  description = "Where the key is: a location of Cloud KMS, such as `europe-west1`. Cannot be changed later."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+(-[a-z]+)*[0-9]*$", var.location))
    error_message = "location must be a location of Cloud KMS, such as europe-west1, europe or global."
  }
}

variable "ring_name" {
  description = "The ring's name: `ringName` of createGcpKmsCodec. IAM cannot bind a permission to it, so use one key for each ring."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]{1,64}$", var.ring_name))
    error_message = "ring_name must be 1 to 64 letters, digits, dots, underscores or hyphens."
  }
}

variable "key_ring_name" {
  description = "The Cloud KMS key ring to create; its name can never be used again. If null, `sealring-<ring_name>`, with hyphens instead of dots."
  type        = string
  default     = null

  validation {
    condition     = var.key_ring_name == null || can(regex("^[A-Za-z0-9_-]{1,63}$", var.key_ring_name))
    error_message = "key_ring_name must be 1 to 63 letters, digits, underscores or hyphens."
  }
  validation {
    condition     = var.key_ring_name != null || length(var.ring_name) <= 54
    error_message = "key_ring_name is required if ring_name has more than 54 characters."
  }
}

variable "key_name" {
  description = "The key to create in the key ring. If null, the ring's name, with hyphens instead of dots."
  type        = string
  default     = null

  validation {
    condition     = var.key_name == null || can(regex("^[A-Za-z0-9_-]{1,63}$", var.key_name))
    error_message = "key_name must be 1 to 63 letters, digits, underscores or hyphens."
  }
  validation {
    condition     = var.key_name != null || length(var.ring_name) <= 63
    error_message = "key_name is required if ring_name has more than 63 characters."
  }
}

variable "protection_level" {
  description = "Where the key is used: `HSM` or `SOFTWARE`. Cannot be changed later."
  type        = string
  default     = "HSM"

  validation {
    condition     = contains(["HSM", "SOFTWARE"], var.protection_level)
    error_message = "protection_level must be \"HSM\" or \"SOFTWARE\"."
  }
}

variable "rotation_period_in_days" {
  description = "Days between automatic rotations inside Cloud KMS. The key's name does not change, and you do not have to do anything."
  type        = number
  default     = 90

  validation {
    condition     = var.rotation_period_in_days >= 2 && var.rotation_period_in_days <= 36500 && floor(var.rotation_period_in_days) == var.rotation_period_in_days
    error_message = "rotation_period_in_days must be a whole number from 2 to 36500 (the bounds of Cloud KMS)."
  }
}

variable "destroy_scheduled_days" {
  description = "Days between the request to destroy a key version and its destruction. Cannot be changed later."
  type        = number
  default     = 30

  validation {
    condition     = var.destroy_scheduled_days >= 7 && var.destroy_scheduled_days <= 120 && floor(var.destroy_scheduled_days) == var.destroy_scheduled_days
    error_message = "destroy_scheduled_days must be a whole number from 7 to 120: 120 is the limit of Cloud KMS, and fewer than 7 can pass unnoticed."
  }
}

variable "bucket_name" {
  description = "The bucket to create for the ring. Bucket names are global."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9_-]{1,61}[a-z0-9]$", var.bucket_name))
    error_message = "bucket_name must be 3 to 63 lower-case letters, digits, underscores or hyphens, and neither begin nor end with one of the last two."
  }
  validation {
    condition     = !startswith(var.bucket_name, "goog") && !strcontains(var.bucket_name, "google")
    error_message = "bucket_name must not begin with \"goog\" or contain \"google\": Cloud Storage refuses these names."
  }
}

variable "bucket_location" {
  description = "Where the bucket is. If null, the location of the key. Required if that location is not a single region."
  type        = string
  default     = null

  validation {
    condition     = var.bucket_location == null || can(regex("^[A-Za-z]+[A-Za-z0-9-]*$", var.bucket_location))
    error_message = "bucket_location must be a location of Cloud Storage, such as europe-west1 or EU."
  }
  validation {
    condition     = var.bucket_location != null || can(regex("^[a-z]+-[a-z]+[0-9]+$", var.location))
    error_message = "bucket_location is required if location is not a region."
  }
}

variable "object_name" {
  description = "The object that holds the ring: `object` of gcsRing. If null, `<ring_name>.ring`."
  type        = string
  default     = null

  validation {
    condition     = var.object_name == null || can(regex("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", var.object_name))
    error_message = "object_name must be letters, digits, dots, underscores or hyphens, in parts separated by single slashes: it is used in IAM conditions, where other characters can have a special meaning."
  }
  validation {
    condition     = alltrue([for part in split("/", coalesce(var.object_name, "x")) : !contains([".", ".."], part)])
    error_message = "object_name must not contain the part \".\" or \"..\"."
  }
  validation {
    condition     = length(coalesce(var.object_name, "x")) <= 1024
    error_message = "object_name must have at most 1024 characters."
  }
}

variable "keep_noncurrent_days" {
  description = "Days for which Cloud Storage keeps an overwritten or deleted ring document."
  type        = number
  default     = 30

  validation {
    condition     = var.keep_noncurrent_days >= 7 && var.keep_noncurrent_days <= 3650 && floor(var.keep_noncurrent_days) == var.keep_noncurrent_days
    error_message = "keep_noncurrent_days must be a whole number from 7 to 3650."
  }
}

variable "allow_store_destruction" {
  description = "Whether the bucket may be destroyed with every version of the ring. For trials only; the key is still kept."
  type        = bool
  default     = false
}

variable "member_principals" {
  description = "Members, which seal, unseal and rotate: service accounts, or single subjects of a workload identity pool."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for principal in var.member_principals : can(regex("^(serviceAccount:[a-z0-9.-]+@[a-z0-9.-]+\\.gserviceaccount\\.com|principal://iam\\.googleapis\\.com/projects/[0-9]+/locations/global/workloadIdentityPools/[A-Za-z0-9.-]+/subject/[A-Za-z0-9._/:-]+)$", principal))])
    error_message = "member_principals must be service accounts (serviceAccount:name@project.iam.gserviceaccount.com) or single subjects of a workload identity pool (principal://iam.googleapis.com/…/subject/…)."
  }
}

variable "reader_principals" {
  description = "Readers, which only unseal."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for principal in var.reader_principals : can(regex("^(serviceAccount:[a-z0-9.-]+@[a-z0-9.-]+\\.gserviceaccount\\.com|principal://iam\\.googleapis\\.com/projects/[0-9]+/locations/global/workloadIdentityPools/[A-Za-z0-9.-]+/subject/[A-Za-z0-9._/:-]+)$", principal))])
    error_message = "reader_principals must be service accounts (serviceAccount:name@project.iam.gserviceaccount.com) or single subjects of a workload identity pool (principal://iam.googleapis.com/…/subject/…)."
  }
  validation {
    condition     = length(setintersection(var.reader_principals, concat(var.member_principals, var.rotator_principals))) == 0
    error_message = "A principal in reader_principals must not also be a member or a rotator: it would have more than a reader's permissions."
  }
}

variable "rotator_principals" {
  description = "Jobs that rotate and revoke in an existing ring."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for principal in var.rotator_principals : can(regex("^(serviceAccount:[a-z0-9.-]+@[a-z0-9.-]+\\.gserviceaccount\\.com|principal://iam\\.googleapis\\.com/projects/[0-9]+/locations/global/workloadIdentityPools/[A-Za-z0-9.-]+/subject/[A-Za-z0-9._/:-]+)$", principal))])
    error_message = "rotator_principals must be service accounts (serviceAccount:name@project.iam.gserviceaccount.com) or single subjects of a workload identity pool (principal://iam.googleapis.com/…/subject/…)."
  }
}

variable "break_glass_principals" {
  description = "Users, groups or service accounts that, after an accident, enable or restore versions of the key and restore the ring. They have no permission to use the key."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for principal in var.break_glass_principals : can(regex("^((user|group):[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+|serviceAccount:[a-z0-9.-]+@[a-z0-9.-]+\\.gserviceaccount\\.com)$", principal))])
    error_message = "break_glass_principals must be users, groups or service accounts, each with its kind before it (user:ada@example.com)."
  }
  validation {
    condition     = length(setintersection(var.break_glass_principals, concat(var.member_principals, var.reader_principals, var.rotator_principals))) == 0
    error_message = "A principal in break_glass_principals must not be a member, a reader or a rotator: it may not use the key."
  }
}

variable "notification_channels" {
  description = "The channels of Cloud Monitoring that receive alerts, in the form `projects/…/notificationChannels/…`. Without channels there are no alerts."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for channel in var.notification_channels : can(regex("^projects/[a-z0-9-]+/notificationChannels/[0-9]+$", channel))])
    error_message = "notification_channels must be names like projects/<project>/notificationChannels/<number>."
  }
}

variable "alert_on_decrypts" {
  description = "Whether denied decrypts and a sudden growth in decrypts raise alerts. They are counted in the Data Access logs of Cloud KMS, which you must enable."
  type        = bool
  default     = false

  validation {
    condition     = !var.alert_on_decrypts || length(var.notification_channels) > 0
    error_message = "alert_on_decrypts needs notification_channels: otherwise no one is notified."
  }
}

variable "enable_data_access_logs" {
  description = "Whether to enable the Data Access logs of Cloud KMS, for every key of the project. Replaces the project's existing setting."
  type        = bool
  default     = false
}

variable "decrypts_alert_threshold" {
  description = "The number of decrypts in 5 minutes above which the alert for sudden growth is raised. A member makes about one every 15 minutes, so 1000 members make about 340."
  type        = number
  default     = 1000

  validation {
    condition     = var.decrypts_alert_threshold >= 1 && floor(var.decrypts_alert_threshold) == var.decrypts_alert_threshold
    error_message = "decrypts_alert_threshold must be a whole number of at least 1."
  }
}

variable "labels" {
  description = "Labels of all resources that can have labels."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(var.labels) <= 32 && alltrue([for key, value in var.labels : can(regex("^[a-z][a-z0-9_-]{0,62}$", key)) && can(regex("^[a-z0-9_-]{0,63}$", value))])
    error_message = "labels must have at most 32 entries, with keys and values of lower-case letters, digits, underscores and hyphens."
  }
}
