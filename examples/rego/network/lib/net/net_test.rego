package lib.net_test

import data.lib.net

test_corporate_hosts_are_inside if net.inside("git.corp.example")

test_localhost_is_inside if net.inside("localhost")

test_the_rest_is_outside if not net.inside("corp.example.evil.example")
