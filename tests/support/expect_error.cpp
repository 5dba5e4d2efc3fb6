#include "tests/support/expect_error.h"
