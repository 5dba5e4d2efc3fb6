import importlib.machinery
import importlib.util
import unittest

import support
from support import TOOLS

LOADER = importlib.machinery.SourceFileLoader("main_job", str(TOOLS / "main-job"))
MAIN_JOB = importlib.util.module_from_spec(importlib.util.spec_from_loader("main_job", LOADER))
LOADER.exec_module(MAIN_JOB)


class Comparison(unittest.TestCase):
    def test_a_known_ratio_is_said(self):
        self.assertEqual(MAIN_JOB.comparison({"ratio": 1.2, "ci95": [1.0, 1.5]}),
                         "ours is 1.20 times as fast (1.00 to 1.50)")

    def test_a_wide_interval_is_no_verdict(self):
        self.assertEqual(MAIN_JOB.comparison({"ratio": 0.57, "ci95": [0.4, 4.19]}),
                         "no verdict: the machine was busy (interval 0.40 to 4.19)")


support.main()
