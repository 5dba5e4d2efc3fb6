#include "tw/jit/cache.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/base/hash.h"

namespace tw {

namespace fs = std::filesystem;

// ------------------------------------------------------------------------------------------------
// The file: magic, four lengths, four texts, checksum of all before it.

static constexpr std::string_view kMagic = "TWCACHE1";
static constexpr size_t kHeader = kMagic.size() + 4 * sizeof(uint64_t);
static constexpr size_t kChecksum = 32;
static constexpr const char* kSuffix = ".twk";

static std::string pack(const CacheEntry& e) {
  std::string bytes(kMagic);
  for (const std::string* part : {&e.key_text, &e.launch, &e.source, &e.object}) {
    uint64_t size = part->size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  }
  bytes += e.key_text + e.launch + e.source + e.object;
  return bytes + hash_hex(bytes);
}

static std::optional<CacheEntry> unpack(std::string_view bytes) {
  if (bytes.size() < kHeader + kChecksum || !bytes.starts_with(kMagic)) return std::nullopt;
  std::string_view body = bytes.substr(0, bytes.size() - kChecksum);
  if (hash_hex(body) != bytes.substr(body.size())) return std::nullopt;
  CacheEntry e;
  size_t header = kMagic.size(), at = kHeader;
  for (std::string* part : {&e.key_text, &e.launch, &e.source, &e.object}) {
    uint64_t size;
    std::memcpy(&size, body.data() + header, sizeof size);
    if (size > body.size() - at) return std::nullopt;
    part->assign(body.substr(at, size));
    header += sizeof size;
    at += size;
  }
  return at == body.size() ? std::optional(std::move(e)) : std::nullopt;
}

// ------------------------------------------------------------------------------------------------
// What a process remembers: that it warned, and entries that no folder takes.

struct ProcessMemory {
  std::mutex mutex;
  std::map<std::string, bool> warned;  // by kind of trouble
  std::map<std::string, CacheEntry> entries;
};
static ProcessMemory& memory() {
  static ProcessMemory m;
  return m;
}

static void warn_once(const std::string& kind, const std::string& message) {
  std::lock_guard lock(memory().mutex);
  if (std::exchange(memory().warned[kind], true)) return;
  fmt::print(stderr, "tilewright: warning: {}\n", message);
}

static std::string reason(int error) { return std::generic_category().message(error); }

// ------------------------------------------------------------------------------------------------
// files

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  bool good() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

static bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

static std::optional<std::string> read_all(int descriptor, int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    ssize_t n = read(descriptor, bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    have += static_cast<size_t>(n);
  }
  return bytes;
}

/// Writes a file that no reader sees half of. Returns 0 or errno.
static int publish(const std::string& path, const std::string& bytes) {
  static std::atomic<int> counter{0};
  std::string aside = fmt::format("{}.{}.{}.tmp", path, getpid(), counter++);
  File file(open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.good()) return errno;
  if (write_all(file.get(), bytes) && fsync(file.get()) == 0 &&
      rename(aside.c_str(), path.c_str()) == 0)
    return 0;
  int error = errno;
  unlink(aside.c_str());
  return error;
}

// ------------------------------------------------------------------------------------------------

static std::string chosen_folder() {
  if (std::string named = env(Env::cache_dir); !named.empty()) return named;
  if (std::string caches = env(Env::xdg_cache_home); !caches.empty()) return caches + "/tilewright";
  if (std::string home = env(Env::home); !home.empty()) return home + "/.cache/tilewright";
  return "";
}

KernelCache KernelCache::open() {
  std::string text = env(Env::cache_size);
  int64_t megabytes = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
  if (error != std::errc() || end != text.data() + text.size() || megabytes < 0)
    throw UserError(fmt::format("TW_CACHE_SIZE is '{}'", text), "wanted megabytes, e.g. 1024");
  return KernelCache(chosen_folder(), megabytes << 20);
}

KernelCache::KernelCache(std::string folder, int64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

std::string KernelCache::path_of(const std::string& name) const {
  return folder_ + "/" + name + kSuffix;
}

/// The bytes of a file of our own; marks it as used.
static std::optional<std::string> read_own(const std::string& path) {
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat s {};
  if (!file.good() || fstat(file.get(), &s) != 0) return std::nullopt;
  // Code of another user must not run as this one.
  if (!S_ISREG(s.st_mode) || s.st_uid != geteuid()) {
    warn_once("foreign", fmt::format("'{}' belongs to another user and is not used", path));
    return std::nullopt;
  }
  futimens(file.get(), nullptr);
  std::optional<std::string> bytes = read_all(file.get(), s.st_size);
  return bytes ? bytes : std::string();
}

std::optional<CacheEntry> KernelCache::load(const std::string& key_text) const {
  const std::string name = hash_hex(key_text);
  if (!folder_.empty()) {
    if (std::optional<std::string> bytes = read_own(path_of(name))) {
      std::optional<CacheEntry> e = unpack(*bytes);
      if (e && e->key_text == key_text) return e;
      if (!e)
        warn_once("damaged",
                  fmt::format("cache entry '{}' is damaged and is rebuilt", path_of(name)));
    }
  }
  std::lock_guard lock(memory().mutex);
  auto it = memory().entries.find(key_text);
  return it == memory().entries.end() ? std::nullopt : std::optional(it->second);
}

bool KernelCache::write_entry(const std::string& name, const std::string& bytes) const {
  if (folder_.empty()) {
    warn_once("folder", "no HOME, so compiled kernels are not kept; set TW_CACHE_DIR to a folder");
    return false;
  }
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  int error = publish(path_of(name), bytes);
  if (error == 0) return true;
  warn_once("folder",
            fmt::format("compiled kernels cannot be kept in '{}' ({}); this process keeps "
                        "them in memory; set TW_CACHE_DIR to a folder with room",
                        folder_, reason(error)));
  return false;
}

void KernelCache::save(const CacheEntry& entry) const {
  const std::string name = hash_hex(entry.key_text);
  if (!write_entry(name, pack(entry))) {
    std::lock_guard lock(memory().mutex);
    memory().entries.insert_or_assign(entry.key_text, entry);
    return;
  }
  publish(folder_ + "/" + name + ".cpp", entry.source);  // for readers; nothing depends on it
  evict();
}

std::string KernelCache::source_path(const std::string& key_text) const {
  std::string path = folder_ + "/" + hash_hex(key_text) + ".cpp";
  return !folder_.empty() && access(path.c_str(), R_OK) == 0 ? path : "";
}

// ------------------------------------------------------------------------------------------------
// the folder as a whole

static int64_t seconds_of(const struct stat& s) { return s.st_mtim.tv_sec; }

std::vector<KernelCache::Listed> KernelCache::list() const {
  std::vector<Listed> all;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, error)) {
    struct stat s {};
    if (file.path().extension() != kSuffix || stat(file.path().c_str(), &s) != 0) continue;
    all.push_back({file.path().stem().string(), s.st_size, seconds_of(s)});
  }
  std::ranges::sort(all, std::greater(), [](const Listed& l) { return std::pair(l.used, l.name); });
  return all;
}

std::optional<CacheEntry> KernelCache::find(const std::string& name_prefix) const {
  std::vector<std::string> names;
  for (const Listed& l : list())
    if (l.name.starts_with(name_prefix)) names.push_back(l.name);
  if (names.size() != 1) return std::nullopt;
  std::optional<std::string> bytes = read_own(path_of(names[0]));
  return bytes ? unpack(*bytes) : std::nullopt;
}

static void remove_entry(const std::string& folder, const std::string& name) {
  unlink((folder + "/" + name + kSuffix).c_str());
  unlink((folder + "/" + name + ".cpp").c_str());
}

/// Files that a killed process left half-written.
static void remove_leftovers(const std::string& folder) {
  std::error_code error;
  const int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    struct stat s {};
    bool old = stat(file.path().c_str(), &s) == 0 && seconds_of(s) < now - 3600;
    if (old && file.path().extension() == ".tmp") unlink(file.path().c_str());
  }
}

void KernelCache::evict() const {
  int64_t total = 0;
  for (const Listed& l : list())
    if ((total += l.bytes) > most_bytes_) remove_entry(folder_, l.name);
  remove_leftovers(folder_);
}

void KernelCache::clear() const {
  for (const Listed& l : list()) remove_entry(folder_, l.name);
  std::lock_guard lock(memory().mutex);
  memory().entries.clear();
}

}  // namespace tw
