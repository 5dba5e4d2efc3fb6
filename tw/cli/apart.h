#pragma once

#include <functional>
#include <string>

namespace tw::cli {

/// What a check of one problem found.
struct Judged {
  std::string faults;  ///< one a line; empty: none
  double worst = 0;    ///< error over bound
  int64_t elements = 0;
  uint64_t ran = 0;  ///< bit k: kernel k of a file did
};

/// judge(seed) for seeds from 1 to `seeds`, in a process of its own, until one finds a fault. A
/// DeviceError is a fault; so is a process that ends by a signal, or takes more than `seconds` for
/// one seed. `label` names the problem in these. Throws other errors as judge() does.
Judged judged_apart(const std::function<Judged(uint64_t seed)>& judge, int seeds, int seconds,
                    const std::string& label);

}  // namespace tw::cli
