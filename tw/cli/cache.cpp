#include "tw/jit/cache.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fstream>

#include "tw/base/error.h"
#include "tw/cli/device.h"
#include "tw/cli/verbs.h"

namespace tw::cli {

static void list(const Cache& cache) {
  int64_t total = 0;
  for (const Cache::Item& item : cache.items()) {
    fmt::print("{}  {:>9} bytes  last used {:%F %T}\n", item.name, item.bytes,
               fmt::localtime(static_cast<std::time_t>(item.last_used)));
    total += item.bytes;
  }
  fmt::print("{} entries, {} bytes in {}\n", cache.items().size(), total, cache.folder());
}

/// The key and the emitted source of the entry whose name starts so.
static void show(const Cache& cache, const std::string& prefix) {
  for (const Cache::Item& item : cache.items()) {
    if (!item.name.starts_with(prefix)) continue;
    fmt::print("{}\n\n", item.key);
    std::ifstream source(cache.source_path(item.key));
    for (std::string line; std::getline(source, line);) fmt::print("{}\n", line);
    return;
  }
  throw UserError(fmt::format("no cache entry's name starts with '{}'", prefix),
                  "`tilewright cache list` names them");
}

static void why(const Arguments& a) {
  Arguments named = a;
  named.target = a.detail;
  const Call call = call_of(named);
  const std::string reason = kernel_for(*call.entry, call.problem, named)
                                 .explain_miss(call.input_views(), call.output_views());
  fmt::print("{}\n", reason.empty() ? "the cache has this variant" : reason);
}

int run_cache(const Arguments& a) {
  const std::shared_ptr<Cache> cache = Cache::of_environment();
  const bool takes_detail = a.target == "show" || a.target == "why";
  if (takes_detail && a.detail.empty())
    throw UserError(
        fmt::format("cache {} needs a name", a.target),
        a.target == "show" ? "name an entry of `tilewright cache list`" : "name a kernel");
  if (!takes_detail && !a.detail.empty())
    throw UserError(fmt::format("cache {} takes no name, got '{}'", a.target, a.detail));
  if (a.target != "why" && (names_problem(a) || a.dtype || a.threads != 0))
    throw UserError("only cache why takes flags");
  if (a.target.empty() || a.target == "list") {
    list(*cache);
  } else if (a.target == "show") {
    show(*cache, a.detail);
  } else if (a.target == "why") {
    why(a);
  } else if (a.target == "clear") {
    cache->clear();
    fmt::print("cleared {}\n", cache->folder());
  } else {
    throw UserError(fmt::format("cache cannot '{}'", a.target),
                    did_you_mean(a.target, {"list", "show", "why", "clear"}));
  }
  return 0;
}

}  // namespace tw::cli
