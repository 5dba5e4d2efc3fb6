#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tw {

/// One compiled variant, as it is kept.
struct CacheEntry {
  std::string key_text;  ///< all that identifies it; the file's name is a hash of this
  std::string launch;    ///< its LaunchSpec as text
  std::string source;    ///< the emitted C++ text
  std::string object;    ///< the shared object
};

/// The folder of compiled kernels, shared by processes without locks: one file per key, written
/// aside and renamed into place, with a checksum over all of it. Trouble of the environment never
/// throws: an entry that is damaged, truncated or somebody else's is rebuilt, a folder that cannot
/// be written (full, read-only, not ours) is replaced by the memory of this process; each with one
/// warning on standard error.
class KernelCache {
 public:
  /// The folder that TW_CACHE_DIR, XDG_CACHE_HOME or HOME name, at this call. Makes nothing yet.
  /// Throws UserError when TW_CACHE_SIZE is no number.
  static KernelCache open();
  explicit KernelCache(std::string folder, int64_t most_bytes);

  std::optional<CacheEntry> load(const std::string& key_text) const;
  void save(const CacheEntry& entry) const;

  /// The folder; empty when no variable names one.
  const std::string& folder() const { return folder_; }
  /// The readable copy of the source that save() leaves beside the entry; "" when there is none.
  std::string source_path(const std::string& key_text) const;

  struct Listed {
    std::string name;  ///< hash of the key
    int64_t bytes = 0;
    int64_t used = 0;  ///< seconds since 1970
  };
  std::vector<Listed> list() const;  ///< most recently used first
  /// The entry whose name starts so; nullopt when none or several do, or when it is damaged.
  std::optional<CacheEntry> find(const std::string& name_prefix) const;
  void clear() const;

 private:
  std::string path_of(const std::string& name) const;
  bool write_entry(const std::string& name, const std::string& bytes) const;
  void evict() const;

  std::string folder_;
  int64_t most_bytes_;
};

}  // namespace tw
