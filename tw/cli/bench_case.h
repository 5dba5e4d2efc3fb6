#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tw/kernels/entry.h"
#include "tw/limit/limit.h"
#include "tw/measure/ceilings.h"
#include "tw/measure/compare.h"
#include "tw/measure/result.h"
#include "tw/target/mapping.h"

namespace tw::cli {

/// A kernel at one problem, to be timed.
struct BenchCase {
  const kernels::KernelEntry* kernel;
  kernels::Problem problem;  ///< complete
  int threads = 1;
  Residence inputs = Residence::cache;    ///< where they are when a call starts
  std::set<std::string> transposed = {};  ///< arguments that lie column-major
  /// Ours on data of this type is the peer; timed after the case, not in turn with it.
  std::optional<DType> against = {};
};

/// The case that a user names by kernel and problem: small calls start from the caches.
BenchCase case_of(const kernels::KernelEntry& k, const kernels::Problem& p, int threads);
int64_t tensor_bytes(const kernels::KernelEntry& k, const kernels::Problem& p);

/// "k=64,m=64,n=64 epilogue=none", and " transposed=A" when some are.
std::string shape_text(const BenchCase& c);

/// A list of cases with the peers to compare with. Peers that lack a plug-in in the folder are an
/// error; one that does not do a case is left out of it, unless the user named it
/// for one kernel.
struct BenchPlan {
  std::string suite;
  std::vector<BenchCase> cases;
  std::vector<std::string> peers;
  bool best_only = false;    ///< one row a case: beside the fastest peer
  bool peers_named = false;  ///< for one kernel: one that does not do a case is an error
  Mapping mapping = {};
  measure::Settings settings = {};
};

/// Names of the suites, and the cases of one. UserError naming near ones.
std::vector<std::string> suite_names();
BenchPlan suite_named(const std::string& name);

/// The folder of peer plug-ins: peers/ beside the command, or beside its folder. Names found there,
/// sorted.
std::string peer_folder();
std::vector<std::string> peers_found();

/// Times every case beside its peers: one row a peer, or one without a peer. `progress` is called
/// before each case, `done` with its rows. Throws UserError when a peer that the user
/// named does not do a case, DeviceError when ours fails or is wrong, InternalError when it takes
/// less than the least time possible.
void run_plan(const BenchPlan& plan, const std::function<void(const std::string&)>& progress,
              const std::function<void(std::vector<measure::Row>)>& done);

/// One case without peers: its row, the rates of the machine, and the least times that follow from
/// rates no undisturbed run exceeds, and from those that were measured.
struct Explanation {
  measure::Row row;
  measure::Ceilings rates;
  Limit least, hoped;
};
Explanation explain(const BenchCase& c, const Mapping& mapping);

}  // namespace tw::cli
