#include "tw/cli/apart.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <sstream>

#include "tw/base/error.h"
#include "tw/emu/apart.h"

namespace tw::cli {
namespace {

constexpr char kEndOfSeed = '.';  ///< then the next seed has its time
constexpr char kEndOfAll = '!';   ///< the result follows

/// An error of another kind than a device's, which the parent throws: its exit code goes first.
std::string told(const Error& e) { return fmt::format("{} {}", e.exit_code(), e.what()); }

/// What the seeds come to, in words for result_of().
std::string judged_here(const std::function<Judged(uint64_t seed)>& judge, int seeds,
                        const std::string& label, const std::function<void()>& seed_is_done) {
  Judged all;
  try {
    for (int seed = 1; seed <= seeds && all.faults.empty(); ++seed) {
      const Judged one = judge(static_cast<uint64_t>(seed));
      all.faults += one.faults;
      all.worst = std::max(all.worst, one.worst);
      all.elements += one.elements;
      all.ran |= one.ran;
      seed_is_done();
    }
  } catch (const DeviceError& e) {
    all.faults += fmt::format("{}: {}", label, e.what());
  } catch (const Error& e) {
    return told(e);
  } catch (const std::exception& e) {
    return told(InternalError(e.what()));
  }
  return fmt::format("0 {} {} {} {}", all.worst, all.elements, all.ran, all.faults);
}

[[noreturn]] void throw_again(int code, const std::string& text) {
  if (code == UserError("").exit_code()) throw UserError(text);
  if (code == EnvError("").exit_code()) throw EnvError(text);
  throw InternalError(text);
}

Judged result_of(const std::string& text) {
  std::istringstream in(text);
  int code = 0;
  Judged j;
  in >> code;
  if (code != 0) throw_again(code, text.substr(text.find(' ') + 1));
  std::string worst;  // also inf
  in >> worst >> j.elements >> j.ran;
  j.worst = std::strtod(worst.c_str(), nullptr);
  in.get();
  j.faults.assign(std::istreambuf_iterator<char>(in), {});
  return j;
}

}  // namespace

Judged judged_apart(const std::function<Judged(uint64_t seed)>& judge, int seeds, int seconds,
                    const std::string& label) {
  const Apart a = run_apart(
      [&](const std::function<void(std::string_view)>& tell) {
        const auto seed_is_done = [&] { tell({&kEndOfSeed, 1}); };
        tell(kEndOfAll + judged_here(judge, seeds, label, seed_is_done));
      },
      {.silence = seconds});
  if (a.silent)
    return {.faults = fmt::format("{}: no answer within {} s: a loop that never ends, or more work "
                                  "than that; --timeout gives more",
                                  label, seconds)};
  const size_t end = a.told.find(kEndOfAll);
  if (end == std::string::npos && a.signal == 0)
    return {.faults = fmt::format("{}: its process ended without a result", label)};
  if (end == std::string::npos)
    return {.faults = fmt::format("{}: its process ended by signal {}: {}", label, a.signal,
                                  strsignal(a.signal))};
  return result_of(a.told.substr(end + 1));
}

}  // namespace tw::cli
