#pragma once

#include "tw/cli/verb.h"

namespace tw::cli {

// One function a verb; each throws tw::Error and returns the exit code.
int run_bench(const Arguments& a);
int run_cache(const Arguments& a);
int run_check(const Arguments& a);
int run_conformance(const Arguments& a);
int run_devices(const Arguments& a);
int run_doctor(const Arguments& a);
int run_eject(const Arguments& a);
/// check with --callable.
int run_judge(const Arguments& a);
int run_explain(const Arguments& a);
int run_kernels(const Arguments& a);
int run_opt(const Arguments& a);
int run_run(const Arguments& a);

}  // namespace tw::cli
