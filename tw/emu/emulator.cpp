#include "tw/emu/emulator.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <numeric>
#include <sstream>

#include "tw/base/error.h"
#include "tw/emu/impl/machine.h"
#include "tw/emu/impl/run.h"
#include "tw/emu/impl/text.h"
#include "tw/runtime/fork_mutex.h"
#include "tw/runtime/launch.h"

namespace tw {

const char* name(EmuFault fault) {
  switch (fault) {
    case EmuFault::race:
      return "race";
    case EmuFault::uninitialised:
      return "uninitialised read";
    case EmuFault::out_of_bounds:
      return "out of bounds";
    case EmuFault::misaligned:
      return "misaligned";
    case EmuFault::divergence:
      return "divergence";
    case EmuFault::deadlock:
      return "deadlock";
    case EmuFault::barrier:
      return "barrier";
    case EmuFault::fence:
      return "missing fence";
    case EmuFault::in_flight:
      return "in flight";
  }
  return "?";
}

namespace emu {
namespace {

/// The arguments' memory: what overlaps is one region, which a copy of the bytes stands for.
class Arguments {
 public:
  Arguments(const LaunchSpec& spec, std::span<const TensorView> views, Memory& memory)
      : views_(views) {
    for (size_t i = 0; i < views.size(); ++i) {
      const ByteRange range = byte_range(views[i]);
      char* data = static_cast<char*>(views[i].data);
      const LaunchSpec::Arg& a = spec.args[i];
      pieces_.push_back({.begin = data + range.begin,
                         .end = data + range.end,
                         .name = fmt::format("argument '{}'", a.name),
                         .written = a.written,
                         // elements of less than a byte are put into bytes that are read
                         .initialised = a.read || !a.written || is_packed(a.dtype)});
    }
    std::vector<size_t> order(pieces_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return pieces_[a].begin < pieces_[b].begin; });
    for (const size_t i : order) {
      const bool overlaps = !merged_.empty() && pieces_[i].begin < merged_.back().end;
      overlaps ? merged_.back().take(pieces_[i]) : merged_.push_back(pieces_[i]);
      pieces_[i].merged = merged_.size() - 1;
    }
    for (Piece& m : merged_) {
      constexpr uintptr_t kAlignment = 256;  // of memory on a GPU
      Region r{.name = m.name, .bytes = m.end - m.begin};
      r.writable = m.written;
      r.initialised = m.initialised;
      const auto phase = reinterpret_cast<uintptr_t>(m.begin) % kAlignment;
      m.region = memory.add(std::move(r), static_cast<int64_t>(phase));
    }
  }
  void bring(Memory& memory) const {
    for (const Piece& m : merged_) copy(memory.region(m.region).begin, m.begin, m.end - m.begin);
  }
  void take_back(Memory& memory) const {
    for (const Piece& m : merged_) {
      if (m.written) copy(m.begin, memory.region(m.region).begin, m.end - m.begin);
    }
  }
  /// Where an argument's element of index 0 lies in the launch.
  void* data(Memory& memory, size_t i) const {
    const Piece& m = merged_[pieces_[i].merged];
    return memory.region(m.region).begin + (static_cast<char*>(views_[i].data) - m.begin);
  }

 private:
  struct Piece {
    char *begin, *end;
    std::string name;
    bool written, initialised;
    size_t merged = 0, region = 0;
    void take(const Piece& p) {
      end = std::max(end, p.end);
      name += " and " + p.name;
      written |= p.written;
      initialised |= p.initialised;
    }
  };
  static void copy(char* to, const char* from, int64_t n) {
    if (n > 0) std::memcpy(to, from, static_cast<size_t>(n));
  }
  std::span<const TensorView> views_;
  std::vector<Piece> pieces_, merged_;
};

int64_t block_count(const LaunchSpec& spec, std::span<const int64_t> dims, int64_t most) {
  int64_t tasks = 1;
  const int64_t kLargestGrid = ((int64_t{1} << 31) - 1) / spec.cluster;
  for (const Expr& e : spec.grid) {
    const int64_t extent = evaluate(e, [&](Symbol s) { return dims[s.id]; });
    if (extent <= 0) return 0;
    tasks = extent > kLargestGrid / tasks ? kLargestGrid : tasks * extent;
  }
  if (most > 0) tasks = std::min(tasks, std::max<int64_t>(1, most / spec.cluster));
  return tasks * spec.cluster;
}

int resident_count(const LaunchSpec& spec, int64_t blocks, int asked) {
  constexpr int64_t kMostThreads = 1024;
  const int64_t fit = std::min(blocks, asked > 0 ? asked : kMostThreads / spec.threads);
  return static_cast<int>(std::max<int64_t>(1, fit / spec.cluster) * spec.cluster);
}

/// What the text gets by value, on a boundary of 64 bytes.
class Parameter {
 public:
  explicit Parameter(const std::vector<uint64_t>& words) : words_(words.size() / kWords + 1) {
    std::memcpy(words_.data(), words.data(), words.size() * sizeof(uint64_t));
  }
  const void* data() const { return words_.data(); }
  static constexpr size_t kWords = 8;

 private:
  struct alignas(kWords * sizeof(uint64_t)) Line {
    uint64_t word[kWords];
  };
  std::vector<Line> words_;
};

/// `regions`, the workspace and what checks and prints tell of, are the last words in front of the
/// tensor maps.
std::vector<uint64_t> parameter(const Arguments& args, const LaunchSpec& spec,
                                std::span<const TensorView> views, std::span<const int64_t> dims,
                                Memory& memory, std::initializer_list<size_t> regions) {
  std::vector<uint64_t> words;
  for (size_t i = 0; i < views.size(); ++i) {
    words.push_back(reinterpret_cast<uintptr_t>(args.data(memory, i)));
  }
  for (const int64_t d : dims) words.push_back(static_cast<uint64_t>(d));
  for (const TensorView& v : views) {
    for (const int64_t s : v.strides) words.push_back(static_cast<uint64_t>(s));
  }
  for (const size_t region : regions) {
    if (spec.tensor_maps.empty() || memory.region(region).bytes > 0)
      words.push_back(reinterpret_cast<uintptr_t>(memory.region(region).begin));
  }
  for (size_t i = 0; i < spec.tensor_maps.size(); ++i) {
    words.resize((words.size() + Parameter::kWords - 1) / Parameter::kWords * Parameter::kWords);
    const size_t arg = spec.tensor_maps[i].arg;
    const TensorMap m = tensor_map(spec, i, views[arg], static_cast<char*>(args.data(memory, arg)));
    words.resize(words.size() + kTensorMapBytes / sizeof(uint64_t));
    std::memcpy(words.data() + words.size() - kTensorMapBytes / sizeof(uint64_t), &m, sizeof(m));
  }
  return words;
}

/// A line of the text without the blanks before it; empty where it has none of that number.
std::string line_text(const std::string& text, int line) {
  std::istringstream in(text);
  std::string found;
  for (int i = 0; i < line && std::getline(in, found); ++i) {
  }
  const size_t begin = found.find_first_not_of(' ');
  return begin == std::string::npos ? "" : found.substr(begin);
}

/// "at line 7 `x = 1;`", of a file that the text took its lines from "at FILE:7 `x = 1;`".
std::string place_text(const LoadedText& loaded, const std::string& text,
                       const std::optional<int>& line) {
  if (!line) return "at an unknown line";
  const std::string code = line_text(text, *line);
  if (loaded.file.empty()) return fmt::format("at line {} `{}`", *line, code);
  if (code.empty()) return "in a function of the prelude";
  return fmt::format("at {}:{} `{}`", loaded.file, *line, code);
}

EmuReport report(const Finding& finding, const LoadedText& loaded, const std::string& text) {
  EmuReport r{.fault = finding.fault,
              .text = fmt::format("{}: {}", name(finding.fault), finding.text)};
  std::vector<std::optional<int>> lines;
  for (const Place p : finding.places) {
    lines.push_back(line_of(loaded, p));
    if (lines.back()) r.lines.push_back(*lines.back());
  }
  for (size_t i = lines.size(); i-- > 0;) {  // "@10" before "@1"
    const std::string mark = fmt::format("@{}", i);
    const size_t at = r.text.find(mark);
    if (at == std::string::npos) continue;
    r.text.replace(at, mark.size(), place_text(loaded, text, lines[i]));
  }
  return r;
}

/// Where the first byte of shared memory lies for text that rounds up and for hardware: a multiple
/// of 16 behind what the system keeps, and no more. Of eight seeds one has the place where nothing
/// is left to round up, as mostly on hardware, and one that where most is.
uint32_t shared_base(uint64_t seed) {
  constexpr uint32_t kKept = 1024, kStep = 16, kSteps = 64;
  if (seed % 8 == 3) return kKept;
  if (seed % 8 == 7) return kKept + kStep;
  return kKept + kStep * Random(~seed).below(kSteps);
}

/// Stacks outlive a launch: their pages are there already when the next begins.
FiberStacks& stacks_for(size_t count) {
  static std::unique_ptr<FiberStacks> stacks;
  static size_t held = 0;
  if (held < count) {
    stacks.reset();
    held = 0;
    stacks = std::make_unique<FiberStacks>(count);
    held = count;
  }
  return *stacks;
}

ForkMutex& one_launch() {
  static ForkMutex mutex;
  return mutex;
}

}  // namespace

EmuReport run(const LoadedText& loaded, const std::string& text, const LaunchSpec& spec,
              std::span<const TensorView> args, std::span<const int64_t> dims,
              const EmuOptions& options, char* messages) {
  if (args.size() != spec.args.size() || dims.size() != spec.dims.size() || spec.threads < 1)
    throw InternalError("an emulated launch does not fit its spec", to_string(spec));
  const std::lock_guard<ForkMutex> held(one_launch());
  Grid grid;
  grid.threads = spec.threads;
  grid.start = loaded.start;
  grid.check = options.check_races;
  grid.blocks = block_count(spec, dims, options.blocks);
  if (grid.blocks == 0) return {};
  grid.resident = resident_count(spec, grid.blocks, options.resident);

  Memory memory(options.seed);
  const Arguments arguments(spec, args, memory);
  grid.cluster = spec.cluster;
  grid.early = spec.early && options.check_races;
  grid.warp_groups = spec.cluster > 1 || !spec.tensor_maps.empty();
  grid.shared_base = shared_base(options.seed);
  for (int i = 0; i < grid.resident; ++i) {
    grid.shared.push_back(memory.add(
        {.name = "shared memory", .bytes = spec.shared_bytes, .shared = true}, grid.shared_base));
  }
  const size_t workspace =
      memory.add({.name = "workspace", .bytes = spec.scratch_bytes * grid.blocks}, 0);
  const int64_t told = messages ? kMessageBytes : 0;
  const size_t inbox = memory.add({.name = "messages", .bytes = told, .initialised = true}, 0);
  memory.build();
  arguments.bring(memory);
  if (messages) std::memcpy(memory.region(inbox).begin, messages, kMessageBytes);
  const Parameter words(parameter(arguments, spec, args, dims, memory, {workspace, inbox}));
  grid.parameter = words.data();

  FiberStacks& stacks =
      stacks_for(static_cast<size_t>(grid.resident) * static_cast<size_t>(spec.threads));
  fill_table(*loaded.table, loaded.base);
  Machine machine(*loaded.table, memory, stacks, grid, options.seed);
  const std::optional<Finding> finding = machine.run();
  arguments.take_back(memory);
  if (messages) std::memcpy(messages, memory.region(inbox).begin, kMessageBytes);
  return finding ? report(*finding, loaded, text) : EmuReport{};
}

}  // namespace emu

EmuReport run_emulated(const std::string& text, const LaunchSpec& spec,
                       std::span<const TensorView> args, std::span<const int64_t> dims,
                       const EmuOptions& options) {
  std::vector<char> messages(spec.messages ? kMessageBytes : 0);
  if (spec.messages) clear_messages(messages.data());
  return emu::run(emu::load_text(text, spec.entry), text, spec, args, dims, options,
                  spec.messages ? messages.data() : nullptr);
}

}  // namespace tw
