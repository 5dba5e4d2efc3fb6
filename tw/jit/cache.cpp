#include "tw/jit/cache.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <mutex>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/base/hash.h"
#include "tw/jit/cache_file.h"
#include "tw/jit/file_io.h"

namespace tw {

namespace fs = std::filesystem;

static constexpr const char* kLockFile = "lock";

/// The names of an entry's files end so.
struct Extensions {
  const char *object, *source;
};
static constexpr Extensions kExtensions[] = {{".so", ".cpp"}, {".cubin", ".cu"}};

static const Extensions& extensions(Cache::Form form) {
  return kExtensions[static_cast<size_t>(form)];
}

static void warn(const std::string& text) {
  std::fprintf(stderr, "tilewright: warning: %s\n", text.c_str());
}

static std::string environment_folder() {
  if (std::string folder = env(Env::cache_dir); !folder.empty()) return fs::absolute(folder);
  if (std::string caches = env(Env::xdg_cache_home); fs::path(caches).is_absolute()) {
    return caches + "/tilewright";
  }
  const std::string home = env(Env::home);
  return home.empty() ? "" : home + "/.cache/tilewright";
}

std::shared_ptr<Cache> Cache::of_environment() {
  struct Registry {
    ForkMutex lock;
    std::map<std::string, std::shared_ptr<Cache>> caches;
  };
  static Registry& registry = *new Registry;
  const std::string folder = environment_folder();
  std::lock_guard guard(registry.lock);
  std::shared_ptr<Cache>& cache = registry.caches[folder];
  if (!cache) cache = std::make_shared<Cache>(folder);
  return cache;
}

Cache::Cache(std::string folder) : folder_(std::move(folder)) {}

std::string Cache::name(const std::string& key) { return hash_hex(key); }

std::string Cache::source_path(const std::string& key, Form form) const {
  if (folder_.empty()) return "";
  const std::string path = folder_ + "/" + name(key) + extensions(form).source;
  std::error_code error;
  return fs::is_regular_file(path, error) ? path : "";
}

/// True for the names that a cache gives its files: a hash, an extension, and what mkostemp adds to
/// files that are not whole yet.
static bool is_cache_file(const std::string& name) {
  constexpr size_t kHash = 32, kAdded = 7;
  if (name.find_first_not_of("0123456789abcdef") != kHash) return false;
  for (const char* extension : {".so", ".cpp", ".cubin", ".cu"}) {
    if (name.compare(kHash, std::string::npos, extension) == 0) return true;
    const size_t end = kHash + std::strlen(extension);
    if (name.size() == end + kAdded && name[end] == '.' && name.find(extension) == kHash)
      return true;
  }
  return false;
}

/// Paths of the files of a cache in the folder, where others' may lie too. No folder holds none.
static std::vector<std::string> cache_files(const std::string& folder, std::error_code& error) {
  std::vector<std::string> found;
  for (fs::directory_iterator e(folder, error), end; !error && e != end; e.increment(error)) {
    std::error_code gone;
    if (!is_cache_file(e->path().filename())) continue;
    if (fs::is_directory(e->symlink_status(gone))) continue;
    found.push_back(e->path());
  }
  if (error == std::errc::no_such_file_or_directory) error.clear();
  return found;
}

void Cache::warn_once(const std::string& reason) {
  if (!warned_.exchange(true)) warn(reason + "; compiled kernels are kept in memory only");
}

/// Code is loaded only from folders that nobody else can fill: our own, or the superuser's.
bool Cache::readable() {
  struct stat s;
  if (folder_.empty() || stat(folder_.c_str(), &s) != 0) return false;
  if ((s.st_uid == geteuid() || s.st_uid == 0) && !(s.st_mode & S_IWOTH)) return true;
  warn_once(fmt::format("cache '{}' can be written by other users", folder_));
  return false;
}

bool Cache::writable() {
  if (folder_.empty()) {
    warn_once("no cache folder: neither TW_CACHE_DIR, XDG_CACHE_HOME nor HOME is set");
    return false;
  }
  std::error_code error;
  if (!fs::exists(folder_, error)) {
    fs::create_directories(fs::path(folder_).parent_path(), error);
    if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
      warn_once(fmt::format("cache '{}': {}", folder_, std::strerror(errno)));
      return false;
    }
  }
  return readable();
}

std::optional<Cache::Kept> Cache::find(const std::string& key, Form form, const Load& load) {
  if (readable()) {
    if (std::optional<Kept> found = find_file(key, form, load)) return found;
  }
  std::lock_guard guard(lock_);
  auto kept = memory_.find(key);
  if (kept == memory_.end()) return std::nullopt;
  load("", kept->second.object);
  return kept->second;
}

/// Entries on folders that forbid execution are loaded from memory.
static std::shared_ptr<const Module> load_module(const std::string& path,
                                                 const std::string& object) {
  if (path.empty()) return Module::from_bytes(object);
  try {
    return Module::from_file(path);
  } catch (const EnvError&) {
    return Module::from_bytes(object);
  }
}

std::optional<Cache::Loaded> Cache::load(const std::string& key) {
  Loaded loaded;
  const std::optional<Kept> found = find(
      key, Form::shared_object,
      [&](const auto& path, const auto& object) { loaded.module = load_module(path, object); });
  if (!found) return std::nullopt;
  loaded.metadata = found->metadata;
  return loaded;
}

std::optional<Cache::Cubin> Cache::load_cubin(const std::string& key) {
  std::optional<Kept> found = find(key, Form::cubin, [](const auto&, const auto&) {});
  if (!found) return std::nullopt;
  return Cubin{std::move(found->object), std::move(found->metadata)};
}

std::optional<Cache::Kept> Cache::find_file(const std::string& key, Form form, const Load& load) {
  const std::string path = folder_ + "/" + name(key) + extensions(form).object;
  const std::optional<std::string> bytes = read_own_file(path);
  struct stat s;
  if (!bytes && (lstat(path.c_str(), &s) != 0 || S_ISREG(s.st_mode))) return std::nullopt;
  const char* fault = "is damaged";
  if (std::optional<CacheFile> file = unpack(bytes.value_or(""))) {
    fault = "is of another key";
    if (file->key == key) {
      try {
        load(path, file->object);
        touch(path);
        return Kept{std::move(file->metadata), std::move(file->object)};
      } catch (const EnvError&) {
        fault = "cannot be loaded";
      }
    }
  }
  warn(fmt::format("cache entry '{}' {}; it is built again", path, fault));
  unlink(path.c_str());
  return std::nullopt;
}

static int64_t allowed_bytes() {
  const std::string text = env(Env::cache_size);
  int megabytes = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
  if (error != std::errc() || end != text.data() + text.size() || megabytes < 1) {
    throw UserError(fmt::format("TW_CACHE_SIZE is '{}': wanted a number of megabytes", text));
  }
  return megabytes * int64_t{1000000};
}

void Cache::put(const std::string& key, Form form, const Kept& entry, const std::string& source,
                const Load& load) {
  const int64_t most = allowed_bytes();
  const std::string base = folder_ + "/" + name(key);
  if (writable() &&
      publish(base + extensions(form).object, pack({entry.object, key, entry.metadata}))) {
    publish(base + extensions(form).source, source);
    // What lay there already stays, and may be no entry.
    const bool found = find_file(key, form, load).has_value();
    trim(most);
    if (found) return;
  }
  load("", entry.object);
  keep(key, entry, most);
}

Cache::Loaded Cache::store(const std::string& key, const std::string& metadata,
                           const std::string& object, const std::string& source) {
  Loaded loaded{nullptr, metadata};
  put(key, Form::shared_object, {metadata, object}, source,
      [&](const auto& path, const auto& bytes) { loaded.module = load_module(path, bytes); });
  return loaded;
}

void Cache::store_cubin(const std::string& key, const Cubin& cubin, const std::string& source) {
  put(key, Form::cubin, {cubin.metadata, cubin.bytes}, source, [](const auto&, const auto&) {});
}

/// The limit holds in memory too; which entries go first does not matter there.
void Cache::keep(const std::string& key, Kept entry, int64_t most) {
  std::lock_guard guard(lock_);
  const int64_t size = static_cast<int64_t>(entry.object.size());
  if (!memory_.emplace(key, std::move(entry)).second) return;
  memory_bytes_ += size;
  while (memory_bytes_ > most && memory_.size() > 1) {
    auto gone = memory_.begin()->first == key ? std::next(memory_.begin()) : memory_.begin();
    memory_bytes_ -= static_cast<int64_t>(gone->second.object.size());
    memory_.erase(gone);
  }
}

bool Cache::publish(const std::string& file, const std::string& bytes) {
  const int error = publish_file(file, bytes);
  if (error) warn_once(fmt::format("cache '{}': {}", folder_, std::strerror(error)));
  return error == 0;
}

// ---- what lies there

std::vector<Cache::Item> Cache::items() const {
  std::vector<Item> found;
  std::error_code error;
  for (const fs::path path : cache_files(folder_, error)) {
    const auto form = std::ranges::find_if(
        kExtensions, [&](const Extensions& e) { return path.extension() == e.object; });
    if (form == std::end(kExtensions)) continue;
    const std::optional<std::string> bytes = read_own_file(path);
    struct stat s, text;
    if (!bytes || stat(path.c_str(), &s) != 0) continue;
    const std::optional<CacheFile> file = unpack(*bytes);
    if (!file) continue;
    const fs::path source = fs::path(path).replace_extension(form->source);
    const int64_t extra = stat(source.c_str(), &text) == 0 ? text.st_size : 0;
    found.push_back({path.stem(), file->key, s.st_size + extra, s.st_mtim.tv_sec});
  }
  std::sort(found.begin(), found.end(),
            [](const Item& a, const Item& b) { return a.last_used > b.last_used; });
  return found;
}

static std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Lines that `from` has and `other` lacks, in order.
static std::vector<std::string> only_in(const std::vector<std::string>& from,
                                        const std::vector<std::string>& other) {
  std::multiset<std::string> rest(other.begin(), other.end());
  std::vector<std::string> lines;
  for (const std::string& line : from) {
    if (auto found = rest.find(line); found != rest.end()) {
      rest.erase(found);
    } else {
      lines.push_back(line);
    }
  }
  return lines;
}

std::string Cache::explain_miss(const std::string& key) const {
  const std::vector<std::string> wanted = lines_of(key);
  std::vector<std::string> nearest, missing = wanted;
  for (const Item& item : items()) {
    if (item.key == key) return "";
    std::vector<std::string> lines = lines_of(item.key);
    std::vector<std::string> lacks = only_in(wanted, lines);
    if (lacks.size() >= missing.size()) continue;
    missing = std::move(lacks);
    nearest = std::move(lines);
  }
  if (nearest.empty()) return "no entry is similar\n";
  std::string text = "the most similar entry differs:\n";
  for (const std::string& line : only_in(nearest, wanted)) text += "  it has   " + line + "\n";
  for (const std::string& line : missing) text += "  wanted   " + line + "\n";
  return text;
}

void Cache::clear() {
  {
    std::lock_guard guard(lock_);
    memory_.clear();
    memory_bytes_ = 0;
  }
  std::error_code error;
  std::string kept = folder_;
  for (const std::string& path : cache_files(folder_, error)) {
    if (unlink(path.c_str()) == 0 || errno == ENOENT || error) continue;
    error.assign(errno, std::generic_category());
    kept = path;
  }
  if (error) {
    throw EnvError(fmt::format("the cache cannot delete '{}': {}", kept, error.message()),
                   "delete it as its owner, or name another folder in TW_CACHE_DIR");
  }
}

/// Removes the least recently used entries until a tenth of the allowed size is free again, so that
/// a full cache is not looked through at every store.
void Cache::trim(int64_t most) {
  struct Found {
    int64_t used, bytes;
    std::string path;
  };
  std::vector<Found> files;
  int64_t total = 0;
  std::error_code error;
  for (const std::string& path : cache_files(folder_, error)) {
    struct stat s;
    if (lstat(path.c_str(), &s) != 0) continue;
    files.push_back({s.st_mtim.tv_sec, s.st_size, path});
    total += s.st_size;
  }
  if (total <= most) return;
  std::sort(files.begin(), files.end(), [](const Found& a, const Found& b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  for (const Found& f : files) {
    if (total <= most - most / 10) break;
    if (unlink(f.path.c_str()) == 0) total -= f.bytes;
  }
}

// ---- turns

/// One lock file serves all keys: a key locks one byte of it. Such locks belong to the open file
/// and vanish with the process.
static bool lock_byte(int file, off_t at) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = at;
  range.l_len = 1;
  return fcntl(file, F_OFD_SETLK, &range) == 0;
}

Cache::Turn::Turn(Cache& cache, const std::string& key) {
  if (!cache.writable()) return;
  file_ = open((cache.folder_ + "/" + kLockFile).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  const off_t at = static_cast<off_t>(hash64(key) >> 2);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!lock_byte(file_, at)) {
    waited_ = true;
    if ((errno != EAGAIN && errno != EACCES) || std::chrono::steady_clock::now() > end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Cache::Turn::~Turn() {
  if (file_ >= 0) close(file_);
}

}  // namespace tw
