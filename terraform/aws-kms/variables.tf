variable "ring_name" {
  description = "The ring's name: `ringName` of createAwsKmsCodec. Every permission to use the key is bound to it."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]{1,64}$", var.ring_name))
    error_message = "ring_name must be 1 to 64 letters, digits, dots, underscores or hyphens."
  }
}

variable "store" {
  description = "Where the ring is kept: `s3` (one object of a bucket) or `dynamodb` (one item of a table)."
  type        = string
  default     = "s3"

  validation {
    condition     = contains(["s3", "dynamodb"], var.store)
    error_message = "store must be \"s3\" or \"dynamodb\"."
  }
}

variable "bucket_name" {
  description = "The bucket to create for the ring. Required with store `s3`, because bucket names are global."
  type        = string
  default     = null

  validation {
    condition     = var.store != "s3" || var.bucket_name != null
    error_message = "bucket_name is required if store is \"s3\"."
  }
  validation {
    condition     = var.bucket_name == null || can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket_name))
    error_message = "bucket_name must be 3 to 63 lower-case letters, digits or hyphens, and neither begin nor end with a hyphen."
  }
}

variable "object_key" {
  description = "The object that holds the ring: `key` of s3Ring. If null, `<ring_name>.ring`."
  type        = string
  default     = null

  validation {
    condition     = var.object_key == null || can(regex("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", var.object_key))
    error_message = "object_key must be letters, digits, dots, underscores or hyphens, in parts separated by single slashes, because it becomes part of policies, where other characters have a special meaning."
  }
  validation {
    condition     = var.object_key == null || length(coalesce(var.object_key, "x")) <= 1024
    error_message = "object_key must have at most 1024 characters."
  }
}

variable "keep_noncurrent_days" {
  description = "Days for which S3 keeps an overwritten or deleted ring document."
  type        = number
  default     = 30

  validation {
    condition     = var.keep_noncurrent_days >= 7 && var.keep_noncurrent_days <= 3650 && floor(var.keep_noncurrent_days) == var.keep_noncurrent_days
    error_message = "keep_noncurrent_days must be a whole number from 7 to 3650."
  }
}

variable "table_name" {
  description = "The DynamoDB table to create, with store `dynamodb`."
  type        = string
  default     = "sealring"

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]{3,200}$", var.table_name))
    error_message = "table_name must be 3 to 200 letters, digits, dots, underscores or hyphens (a restored copy gets a longer name)."
  }
}

variable "single_use" {
  description = "Whether members and readers may claim tokens in the table (dynamodbSingleUse)."
  type        = bool
  default     = false

  validation {
    condition     = !var.single_use || var.store == "dynamodb"
    error_message = "single_use needs store \"dynamodb\": S3 has no store for claims."
  }
}

variable "allow_store_destruction" {
  description = "Whether `terraform destroy` may destroy the store with every version of the ring. For trials only."
  type        = bool
  default     = false
}

variable "deletion_window_in_days" {
  description = "Days between the request to delete the KMS key and its deletion. The key policy denies a shorter waiting period."
  type        = number
  default     = 30

  validation {
    condition     = var.deletion_window_in_days >= 7 && var.deletion_window_in_days <= 30 && floor(var.deletion_window_in_days) == var.deletion_window_in_days
    error_message = "deletion_window_in_days must be a whole number from 7 to 30 (the bounds of AWS KMS)."
  }
}

variable "rotation_period_in_days" {
  description = "Days between automatic rotations inside KMS. The key's ARN does not change, and you do not have to do anything."
  type        = number
  default     = 365

  validation {
    condition     = var.rotation_period_in_days >= 90 && var.rotation_period_in_days <= 2560 && floor(var.rotation_period_in_days) == var.rotation_period_in_days
    error_message = "rotation_period_in_days must be a whole number from 90 to 2560 (the bounds of AWS KMS)."
  }
}

variable "multi_region" {
  description = "Whether the key is a multi-Region primary key (`mrk-…`). Cannot be changed later. You create its replicas yourself."
  type        = bool
  default     = false
}

variable "alias" {
  description = "The key's alias. If null, `alias/sealring-<ring_name>`, with hyphens instead of dots."
  type        = string
  default     = null

  validation {
    condition     = var.alias == null || can(regex("^alias/[A-Za-z0-9/_-]{1,250}$", var.alias))
    error_message = "alias must be \"alias/\" and 1 to 250 letters, digits, slashes, underscores or hyphens."
  }
  validation {
    condition     = var.alias == null || !startswith(coalesce(var.alias, "x"), "alias/aws/")
    error_message = "alias must not begin with \"alias/aws/\": these names belong to AWS."
  }
}

variable "later_key_wrapper" {
  description = "Whether this key is for a second or later key wrapper of a ring: members then get kms:Encrypt instead of kms:GenerateDataKey."
  type        = bool
  default     = false
}

variable "administrator_arns" {
  description = "ARNs of roles or users who administer the key but may not use it. If the list is empty, the IAM policies of the account decide who administers the key."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.administrator_arns : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "administrator_arns must be ARNs of IAM roles or users, without wildcards."
  }
}

variable "member_role_arns" {
  description = "ARNs of the roles whose servers seal, unseal and rotate."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.member_role_arns : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "member_role_arns must be ARNs of IAM roles (arn:aws:iam::111122223333:role/name), without wildcards."
  }
}

variable "reader_role_arns" {
  description = "ARNs of the roles whose servers only unseal."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.reader_role_arns : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "reader_role_arns must be ARNs of IAM roles (arn:aws:iam::111122223333:role/name), without wildcards."
  }
  validation {
    condition     = length(setintersection(var.reader_role_arns, concat(var.member_role_arns, var.rotator_role_arns))) == 0
    error_message = "A role in reader_role_arns must not also be a member or a rotator: it would have more than a reader's permissions."
  }
}

variable "rotator_role_arns" {
  description = "ARNs of the roles of jobs that rotate and revoke in an existing ring."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.rotator_role_arns : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "rotator_role_arns must be ARNs of IAM roles (arn:aws:iam::111122223333:role/name), without wildcards."
  }
}

variable "break_glass_role_arns" {
  description = "ARNs of the roles that, after an accident, enable the key, cancel its deletion and restore the ring. They may not use the key."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.break_glass_role_arns : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "break_glass_role_arns must be ARNs of IAM roles (arn:aws:iam::111122223333:role/name), without wildcards."
  }
  validation {
    condition     = length(setintersection(var.break_glass_role_arns, concat(var.member_role_arns, var.reader_role_arns, var.rotator_role_arns))) == 0
    error_message = "A role in break_glass_role_arns must not be a member, a reader or a rotator: it may not use the key."
  }
}

variable "attach_policies" {
  description = "Whether to attach each role's policy to the given roles. Otherwise attach the JSON of the output `policies` yourself."
  type        = bool
  default     = false
}

variable "alarm_topic_arns" {
  description = "The SNS topics that receive alarms and notices of changes to the key. Their policies must let events.amazonaws.com and cloudwatch.amazonaws.com publish. Without topics, nothing is reported."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.alarm_topic_arns : can(regex("^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$", arn))])
    error_message = "alarm_topic_arns must be ARNs of standard SNS topics (EventBridge cannot send to a FIFO topic)."
  }
}

variable "cloudtrail_log_group_name" {
  description = "The CloudWatch log group that a trail with KMS events writes to. If null, there are no alarms for denied decrypts or for a sudden growth in decrypts."
  type        = string
  default     = null

  validation {
    condition     = var.cloudtrail_log_group_name == null || can(regex("^[A-Za-z0-9._/#-]{1,512}$", var.cloudtrail_log_group_name))
    error_message = "cloudtrail_log_group_name must be the name of a log group: 1 to 512 letters, digits, or any of . _ / # -."
  }
}

variable "decrypts_alarm_threshold" {
  description = "The number of decrypts in 5 minutes at which the alarm for sudden growth is raised. A member makes about one every 15 minutes, so 1000 members make about 340."
  type        = number
  default     = 1000

  validation {
    condition     = var.decrypts_alarm_threshold >= 1 && floor(var.decrypts_alarm_threshold) == var.decrypts_alarm_threshold
    error_message = "decrypts_alarm_threshold must be a whole number of at least 1."
  }
}

variable "tags" {
  description = "Tags of all resources that can have tags."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for key, value in var.tags : length(key) >= 1 && length(key) <= 128 && length(value) <= 256 && !startswith(lower(key), "aws:")])
    error_message = "tags must have keys of 1 to 128 characters that do not begin with \"aws:\", and values of at most 256."
  }
}
