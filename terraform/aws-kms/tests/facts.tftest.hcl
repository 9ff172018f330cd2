# What the module creates, on a mocked provider.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  ring_name             = "payments"
  bucket_name           = "payments-sealring"
  member_role_arns      = ["arn:aws:iam::111122223333:role/servers/member"]
  reader_role_arns      = ["arn:aws:iam::111122223333:role/reader"]
  rotator_role_arns     = ["arn:aws:iam::111122223333:role/rotator"]
  break_glass_role_arns = ["arn:aws:iam::111122223333:role/rescuer"]
}

run "key" {
  assert {
    condition     = aws_kms_key.this.enable_key_rotation && aws_kms_key.this.rotation_period_in_days == 365
    error_message = "The key must rotate every year."
  }
  assert {
    condition     = aws_kms_key.this.deletion_window_in_days == 30
    error_message = "The deletion window must be 30 days."
  }
  assert {
    condition     = aws_kms_key.this.key_usage == "ENCRYPT_DECRYPT" && aws_kms_key.this.customer_master_key_spec == "SYMMETRIC_DEFAULT"
    error_message = "The key must be symmetric."
  }
  assert {
    condition     = !aws_kms_key.this.multi_region && !aws_kms_key.this.bypass_policy_lockout_safety_check
    error_message = "The key must be of one Region, and its policy checked for a lock-out."
  }
  assert {
    condition     = aws_kms_alias.this.name == "alias/sealring-payments"
    error_message = "The alias must be made of the ring's name."
  }
  assert {
    condition = jsondecode(aws_kms_key.this.policy).Statement[1].Condition == {
      NumericGreaterThanEquals = { "kms:ScheduleKeyDeletionPendingWindowInDays" = "30" }
    }
    error_message = "Nobody may schedule a deletion with a shorter window."
  }
}

run "bucket" {
  assert {
    condition     = length(aws_dynamodb_table.ring) == 0
    error_message = "There must be one store."
  }
  assert {
    condition     = !aws_s3_bucket.ring[0].force_destroy
    error_message = "A bucket with a ring must not be destroyed."
  }
  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.ring[0].block_public_acls,
      aws_s3_bucket_public_access_block.ring[0].block_public_policy,
      aws_s3_bucket_public_access_block.ring[0].ignore_public_acls,
      aws_s3_bucket_public_access_block.ring[0].restrict_public_buckets,
    ])
    error_message = "Public access must be blocked in all four ways."
  }
  assert {
    condition     = aws_s3_bucket_versioning.ring[0].versioning_configuration[0].status == "Enabled"
    error_message = "The bucket must keep versions."
  }
  assert {
    condition     = aws_s3_bucket_ownership_controls.ring[0].rule[0].object_ownership == "BucketOwnerEnforced"
    error_message = "There must be no ACLs."
  }
  assert {
    condition     = one(one(aws_s3_bucket_server_side_encryption_configuration.ring[0].rule).apply_server_side_encryption_by_default).sse_algorithm == "AES256"
    error_message = "The bucket must be encrypted."
  }
  assert {
    condition = alltrue([
      aws_s3_bucket_lifecycle_configuration.ring[0].rule[0].noncurrent_version_expiration[0].noncurrent_days == 30,
      length(aws_s3_bucket_lifecycle_configuration.ring[0].rule) == 1,
      length(aws_s3_bucket_lifecycle_configuration.ring[0].rule[0].expiration) == 0,
    ])
    error_message = "Old versions, and never the current one, must expire."
  }
  assert {
    condition     = aws_s3_bucket_policy.ring[0].policy == output.bucket_policy
    error_message = "The policy of the output must be the policy of the bucket."
  }
}

run "table" {
  variables {
    store      = "dynamodb"
    single_use = true
  }
  assert {
    condition     = length(aws_s3_bucket.ring) == 0
    error_message = "There must be one store."
  }
  assert {
    condition = alltrue([
      aws_dynamodb_table.ring[0].billing_mode == "PAY_PER_REQUEST",
      aws_dynamodb_table.ring[0].hash_key == "pk",
      aws_dynamodb_table.ring[0].deletion_protection_enabled,
      aws_dynamodb_table.ring[0].point_in_time_recovery[0].enabled,
    ])
    error_message = "The table must be on demand, with the key pk, protected and recoverable."
  }
  assert {
    condition     = aws_dynamodb_table.ring[0].ttl[0].enabled && aws_dynamodb_table.ring[0].ttl[0].attribute_name == "expires"
    error_message = "Claims must expire."
  }
}

run "nobody" {
  variables {
    administrator_arns    = ["arn:aws:iam::111122223333:role/operators"]
    member_role_arns      = []
    reader_role_arns      = []
    rotator_role_arns     = []
    break_glass_role_arns = []
  }
  assert {
    condition     = [for statement in jsondecode(aws_kms_key.this.policy).Statement : statement.Sid] == ["Administer", "ScheduleDeletionWithTheWholeWindow"]
    error_message = "Nobody may use a key without roles."
  }
  assert {
    condition     = alltrue([for statement in jsondecode(aws_kms_key.this.policy).Statement : jsonencode(statement.Principal.AWS) == jsonencode(var.administrator_arns)])
    error_message = "Only the given administrators may administer the key."
  }
  assert {
    condition     = length(output.vpc_endpoint_policies) == 0
    error_message = "There must be no endpoint policy that allows nobody."
  }
}

run "nothing_is_attached_unasked" {
  assert {
    condition     = length(aws_iam_role_policy.role) == 0
    error_message = "No policy must be attached."
  }
}

run "attachments" {
  variables {
    attach_policies = true
  }
  assert {
    condition = { for each in aws_iam_role_policy.role : each.role => each.policy } == {
      member  = output.policies.member
      reader  = output.policies.reader
      rotator = output.policies.rotator
      rescuer = output.policies.break_glass
    }
    error_message = "Each role must have its own policy, by its name without the path."
  }
}

run "no_alarms_unasked" {
  assert {
    condition     = length(aws_cloudwatch_event_rule.key_changed) + length(aws_cloudwatch_metric_alarm.decrypts) == 0
    error_message = "Without a topic and a trail there must be no alarms."
  }
}

run "alarms" {
  variables {
    alarm_topic_arns          = ["arn:aws:sns:eu-west-1:111122223333:alarms", "arn:aws:sns:eu-west-1:111122223333:pager"]
    cloudtrail_log_group_name = "trail"
  }
  assert {
    condition = alltrue([
      for name in ["DisableKey", "ScheduleKeyDeletion"] :
      contains(jsondecode(aws_cloudwatch_event_rule.key_changed[0].event_pattern).detail.eventName, name)
    ])
    error_message = "A disabled key, and a scheduled deletion, must be reported."
  }
  assert {
    condition     = contains(jsondecode(aws_cloudwatch_event_rule.key_changed[0].event_pattern).detail.requestParameters.keyId, output.key_id)
    error_message = "Only events of this key must be reported."
  }
  assert {
    condition     = tolist(aws_cloudwatch_event_target.key_changed[*].arn) == var.alarm_topic_arns
    error_message = "Every topic must be notified."
  }
  assert {
    condition     = { for kind, alarm in aws_cloudwatch_metric_alarm.decrypts : kind => alarm.threshold } == { denied = 1, made = 1000 }
    error_message = "One denied decrypt, and a large number of decrypts, must raise an alarm."
  }
  assert {
    condition = alltrue([
      for filter in aws_cloudwatch_log_metric_filter.decrypts : strcontains(filter.pattern, output.key_id)
    ])
    error_message = "Only decrypts of this key count."
  }
  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.decrypts : alarm.alarm_actions == toset(var.alarm_topic_arns)])
    error_message = "Every topic must be notified."
  }
}

run "outputs_for_s3" {
  assert {
    condition     = output.codec_options == { keyId = output.key_id, multiRegion = false, ringName = "payments" }
    error_message = "codec_options must be options of createAwsKmsCodec."
  }
  assert {
    condition     = output.s3_ring_options == { bucket = "payments-sealring", key = "payments.ring", expectedBucketOwner = "111122223333" }
    error_message = "s3_ring_options must be options of s3Ring."
  }
  assert {
    condition     = output.dynamodb_ring_options == null
    error_message = "There is no table."
  }
  assert {
    condition     = keys(output.environment) == ["SEALRING_AWS_KMS_KEY_ID", "SEALRING_AWS_KMS_MULTI_REGION", "SEALRING_RING_NAME", "SEALRING_RING_STORE", "SEALRING_S3_BUCKET", "SEALRING_S3_BUCKET_OWNER", "SEALRING_S3_KEY"]
    error_message = "The environment must have all settings."
  }
  assert {
    condition     = strcontains(output.environment_file, "\nSEALRING_RING_NAME=payments\nSEALRING_RING_STORE=${output.environment.SEALRING_RING_STORE}\n")
    error_message = "The environment file must have the same variables."
  }
}

run "outputs_for_dynamodb" {
  variables {
    store        = "dynamodb"
    multi_region = true
  }
  assert {
    condition     = output.dynamodb_ring_options == { table = "sealring", name = "payments" } && output.s3_ring_options == null && output.bucket_policy == null
    error_message = "dynamodb_ring_options must be options of dynamodbRing."
  }
  assert {
    condition     = output.codec_options.multiRegion && output.environment.SEALRING_AWS_KMS_MULTI_REGION == "true"
    error_message = "The codec options must say that the key is multi-Region."
  }
}
