# Each run has one bad value, and must be refused because of it.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  ring_name   = "payments"
  bucket_name = "payments-sealring"
}

run "refuses_a_ring_name_with_a_space" {
  command = plan
  variables {
    ring_name = "pay ments"
  }
  expect_failures = [var.ring_name]
}

run "refuses_a_ring_name_that_is_empty" {
  command = plan
  variables {
    ring_name = ""
  }
  expect_failures = [var.ring_name]
}

run "refuses_an_unknown_store" {
  command = plan
  variables {
    store = "redis"
  }
  expect_failures = [var.store]
}

run "refuses_no_bucket_name" {
  command = plan
  variables {
    bucket_name = null
  }
  expect_failures = [var.bucket_name]
}

run "refuses_a_bucket_name_in_capitals" {
  command = plan
  variables {
    bucket_name = "Payments"
  }
  expect_failures = [var.bucket_name]
}

run "refuses_an_object_key_with_a_wildcard" {
  command = plan
  variables {
    object_key = "rings/*"
  }
  expect_failures = [var.object_key]
}

run "refuses_an_object_key_with_a_slash_before" {
  command = plan
  variables {
    object_key = "/payments.ring"
  }
  expect_failures = [var.object_key]
}

run "refuses_an_object_key_that_is_too_long" {
  command = plan
  variables {
    object_key = format("%01025d", 0)
  }
  expect_failures = [var.object_key]
}

run "refuses_old_rings_kept_for_a_day" {
  command = plan
  variables {
    keep_noncurrent_days = 1
  }
  expect_failures = [var.keep_noncurrent_days]
}

run "refuses_a_table_name_that_is_too_short" {
  command = plan
  variables {
    table_name = "t"
  }
  expect_failures = [var.table_name]
}

run "refuses_claims_in_s3" {
  command = plan
  variables {
    single_use = true
  }
  expect_failures = [var.single_use]
}

run "refuses_a_deletion_window_of_six_days" {
  command = plan
  variables {
    deletion_window_in_days = 6
  }
  expect_failures = [var.deletion_window_in_days]
}

run "refuses_a_deletion_window_of_31_days" {
  command = plan
  variables {
    deletion_window_in_days = 31
  }
  expect_failures = [var.deletion_window_in_days]
}

run "refuses_a_deletion_window_of_half_days" {
  command = plan
  variables {
    deletion_window_in_days = 7.5
  }
  expect_failures = [var.deletion_window_in_days]
}

run "refuses_a_rotation_each_month" {
  command = plan
  variables {
    rotation_period_in_days = 30
  }
  expect_failures = [var.rotation_period_in_days]
}

run "refuses_an_alias_without_its_head" {
  command = plan
  variables {
    alias = "sealring"
  }
  expect_failures = [var.alias]
}

run "refuses_an_alias_of_aws" {
  command = plan
  variables {
    alias = "alias/aws/s3"
  }
  expect_failures = [var.alias]
}

run "refuses_everybody_as_administrator" {
  command = plan
  variables {
    administrator_arns = ["*"]
  }
  expect_failures = [var.administrator_arns]
}

run "refuses_everybody_as_member" {
  command = plan
  variables {
    member_role_arns = ["*"]
  }
  expect_failures = [var.member_role_arns]
}

run "refuses_the_account_as_member" {
  command = plan
  variables {
    member_role_arns = ["arn:aws:iam::111122223333:root"]
  }
  expect_failures = [var.member_role_arns]
}

run "refuses_any_role_as_member" {
  command = plan
  variables {
    member_role_arns = ["arn:aws:iam::111122223333:role/*"]
  }
  expect_failures = [var.member_role_arns]
}

run "refuses_a_user_as_reader" {
  command = plan
  variables {
    reader_role_arns = ["arn:aws:iam::111122223333:user/ada"]
  }
  expect_failures = [var.reader_role_arns]
}

run "refuses_a_reader_that_is_a_member" {
  command = plan
  variables {
    reader_role_arns = ["arn:aws:iam::111122223333:role/member"]
    member_role_arns = ["arn:aws:iam::111122223333:role/member"]
  }
  expect_failures = [var.reader_role_arns]
}

run "refuses_a_rotator_by_its_name" {
  command = plan
  variables {
    rotator_role_arns = ["rotator"]
  }
  expect_failures = [var.rotator_role_arns]
}

run "refuses_a_break_glass_role_by_its_name" {
  command = plan
  variables {
    break_glass_role_arns = ["rescuer"]
  }
  expect_failures = [var.break_glass_role_arns]
}

run "refuses_a_break_glass_role_that_is_a_member" {
  command = plan
  variables {
    break_glass_role_arns = ["arn:aws:iam::111122223333:role/member"]
    member_role_arns      = ["arn:aws:iam::111122223333:role/member"]
  }
  expect_failures = [var.break_glass_role_arns]
}

run "refuses_a_fifo_topic" {
  command = plan
  variables {
    alarm_topic_arns = ["arn:aws:sns:eu-west-1:111122223333:alarms", "arn:aws:sns:eu-west-1:111122223333:alarms.fifo"]
  }
  expect_failures = [var.alarm_topic_arns]
}

run "refuses_a_log_group_with_a_star" {
  command = plan
  variables {
    cloudtrail_log_group_name = "trail*"
  }
  expect_failures = [var.cloudtrail_log_group_name]
}

run "refuses_an_alarm_at_no_decrypts" {
  command = plan
  variables {
    decrypts_alarm_threshold = 0
  }
  expect_failures = [var.decrypts_alarm_threshold]
}

run "refuses_a_tag_of_aws" {
  command = plan
  variables {
    tags = { "aws:owner" = "me" }
  }
  expect_failures = [var.tags]
}

run "refuses_a_role_of_another_account" {
  command = plan
  variables {
    member_role_arns = ["arn:aws:iam::444455556666:role/member"]
  }
  expect_failures = [aws_kms_key.this]
}
