#include "tw/tensor/npy.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/num/codec.h"

#include "tests/support/expect_error.h"

namespace tw {

/// A file name that is this process's own; the file is removed at the end.
struct TempFile {
  std::string path = testing::TempDir() + "tw_npy_" + std::to_string(getpid()) + ".npy";
  ~TempFile() { unlink(path.c_str()); }
  void write(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
  }
};

static std::string file_of(const std::string& header, const std::string& data) {
  std::string size{static_cast<char>(header.size()), 0};
  return std::string("\x93NUMPY\x01\x00", 8) + size + header + data;
}

TEST(Npy, GoesThereAndBackForEveryType) {
  TempFile file;
  for (int i = 0; i < kDTypeCount; ++i) {
    for (std::vector<int64_t> dims : {std::vector<int64_t>{}, {5}, {2, 3}, {0, 4}, {2, 1, 3}}) {
      Tensor t = host_tensor(static_cast<DType>(i), dims);
      for (int64_t e = 0; e < t.count(); ++e) set(t, e, static_cast<double>(e % 2));
      write_npy(file.path, t);
      Tensor back = read_npy(file.path, t.dtype());
      // A file says how many bytes a row has, not how many of their bits are elements.
      const int last = t.view().rank() - 1;
      if (is_packed(t.dtype()) && last >= 0) {
        EXPECT_EQ(back.dims()[last], byte_count(t.dtype(), {dims[last]}) * 8 / bits(t.dtype()));
        back = back.slice(last, 0, dims[last]);
      }
      EXPECT_EQ(to_string(back.view()), to_string(t.view()));
      for (int64_t e = 0; e < t.count(); ++e) EXPECT_EQ(get(back, e), get(t, e));
    }
  }
}

/// Rows of 4 bytes hold 5 elements of 6 bits; in memory they take whole groups, 6 bytes.
TEST(Npy, RowsOfBytesThatEndInsideAGroup) {
  TempFile file;
  Tensor bytes = host_tensor(u8, {2, 4});
  for (int64_t e = 0; e < 8; ++e) set(bytes, e, static_cast<double>(e * 37 % 256));
  write_npy(file.path, bytes);
  const Tensor t = read_npy(file.path, e3m2);
  ASSERT_EQ(t.dims(), (std::vector<int64_t>{2, 5}));
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t e = 0; e < 5; ++e) {
      uint64_t code = 0;
      for (int64_t bit = 0; bit < 6; ++bit) {
        const int64_t at = e * 6 + bit;
        const auto byte = static_cast<uint64_t>(get(bytes, row * 4 + at / 8));
        code |= (byte >> at % 8 & 1) << bit;
      }
      EXPECT_EQ(get(t, row * 5 + e), decode(e3m2, code)) << row << ", " << e;
    }
  }
}

TEST(Npy, WritesWhatNumpyWrites) {
  // The bytes of numpy.save(f, numpy.arange(3, dtype=numpy.int16)), from numpy 1.24.
  TempFile file;
  Tensor t = host_tensor(i16, {3});
  for (int i = 0; i < 3; ++i) set(t, i, i);
  write_npy(file.path, t);
  std::ifstream in(file.path, std::ios::binary);
  std::string got((std::istreambuf_iterator<char>(in)), {});
  std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
  std::string want = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header +
                     std::string(128 - 10 - header.size() - 1, ' ') + "\n" +
                     std::string("\x00\x00\x01\x00\x02\x00", 6);
  EXPECT_EQ(got, want);
}

TEST(Npy, FormatsThatNumpyLacksAreUnsignedIntegers) {
  TempFile file;
  Tensor t = host_tensor(bf16, {2});
  set(t, 0, 1.5);
  set(t, 1, -2);
  write_npy(file.path, t);
  Tensor raw = read_npy(file.path);
  EXPECT_EQ(raw.dtype(), u16);
  EXPECT_EQ(get(raw, 0), 0x3fc0);
  EXPECT_EQ(get(read_npy(file.path, bf16), 1), -2);
}

TEST(Npy, FortranOrderBecomesStrides) {
  TempFile file;
  file.write(file_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}\n",
                     std::string("\x00\x01\x02\x03\x04\x05", 6)));
  Tensor t = read_npy(file.path);
  EXPECT_EQ(t.view().strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(get(t, 1), 2);
  EXPECT_EQ(get(t, 3), 1);
}

TEST(Npy, WritesStridedViewsPacked) {
  TempFile file;
  Tensor t = host_tensor(i32, {2, 3});
  for (int i = 0; i < 6; ++i) set(t, i, i);
  write_npy(file.path, t.transpose(0, 1));
  EXPECT_EQ(get(read_npy(file.path), 1), 3);
}

TEST(Npy, DamageIsNamedByFileAndOffset) {
  TempFile file;
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  auto damage = [&](const std::string& part, const std::string& bytes) {
    file.write(bytes);
    TW_EXPECT_ERROR(UserError, file.path + ": " + part, [&] { read_npy(file.path); });
  };
  damage("byte 3: the file ends inside the magic; wanted 5 bytes more", "\x93NU");
  damage("byte 0: no .npy magic", std::string(200, 'x'));
  damage("byte 6: format version 9", std::string("\x93NUMPY\x09\x00", 8) + std::string(99, 'x'));
  damage("byte 30: the file ends inside the header", file_of(good, "").substr(0, 30));
  damage("byte 70: the file ends inside the data; wanted 24 bytes more", file_of(good, ""));
  damage("byte 74: the file ends inside the data; wanted 20 bytes more", file_of(good, "1234"));
  damage("byte 10: no '{'", file_of("nonsense", ""));
  damage("byte 11: no quoted text", file_of("{17: 2}", ""));
  damage("byte 11: an open quote", file_of("{'descr", ""));
  damage("byte 11: key 'color'", file_of("{'color': 'red'}", ""));
  damage("byte 12: the header ends; wanted the keys", file_of("{}", ""));
  for (const char* more : {"x", " 7\n", ", }", "{}", "\t"})
    damage("byte 7", file_of(good + more, std::string(24, '\0')));
  damage("byte 71: text after the header's '}'; wanted spaces only",
         file_of(good + " garbage\n", std::string(24, '\0')));
  damage("byte 20: descr '>f4'; wanted a little-endian type",
         file_of("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }\n", ""));
  damage("byte 44: fortran_order is no boolean",
         file_of("{'descr': '<f4', 'fortran_order': maybe, 'shape': (2, 3), }\n", ""));
  damage("byte 61: shape holds no extent",
         file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }\n", ""));
  damage("byte 62: no ',' or ')' in shape",
         file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2; 3), }\n", ""));
  damage("byte 81: the file ends inside the data; wanted 4000000000000 bytes more",
         file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }", ""));
}

TEST(Npy, OverflowingShapeIsRefused) {
  TempFile file;
  file.write(
      file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }", ""));
  TW_EXPECT_ERROR(UserError, "more than 2^63 bytes", [&] { read_npy(file.path); });
}

TEST(Npy, OtherTypesAreRefusedEvenOfTheSameSize) {
  TempFile file;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType kept = static_cast<DType>(i);
    write_npy(file.path, host_tensor(kept, {2}));
    for (int j = 0; j < kDTypeCount; ++j) {
      const DType as = static_cast<DType>(j);
      if (std::string(info(kept).numpy) == info(as).numpy) {
        EXPECT_EQ(read_npy(file.path, as).dtype(), as);
      } else {
        TW_EXPECT_ERROR(UserError,
                        fmt::format("{}: byte 20: elements of type '{}'; wanted {} ('{}')",
                                    file.path, info(kept).numpy, name(as), info(as).numpy),
                        [&] { read_npy(file.path, as); });
      }
    }
  }
  // An unsigned integer stands for bf16, another type of 16 bits does not.
  write_npy(file.path, host_tensor(u16, {2}));
  EXPECT_EQ(read_npy(file.path, bf16).dtype(), bf16);
  for (DType t : {f16, i16}) {
    write_npy(file.path, host_tensor(t, {2}));
    TW_EXPECT_ERROR(UserError, "wanted bf16 ('<u2')", [&] { read_npy(file.path, bf16); });
  }
}

TEST(Npy, MissingFilesAreErrorsOfTheUserAndFullDisksOfTheEnvironment) {
  TW_EXPECT_ERROR(UserError, "No such file", [] { read_npy("/nonexistent/a.npy"); });
  TW_EXPECT_ERROR(UserError, "/: Is a directory", [] { read_npy("/"); });
  TW_EXPECT_ERROR(UserError, "/dev/null/a.npy: Not a directory",
                  [] { read_npy("/dev/null/a.npy"); });
  TW_EXPECT_ERROR(UserError, "No such file or directory; name a file in a folder that exists",
                  [] { write_npy("/nonexistent/a.npy", host_tensor(f32, {2})); });
  TW_EXPECT_ERROR(EnvError, "No space left", [] { write_npy("/dev/full", host_tensor(f32, {2})); });
}

TEST(Npy, AFailedWriteLeavesTheOldFileAndNothingBesideIt) {
  const std::string folder = testing::TempDir() + "tw_npy_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string file = folder + "/a.npy", link = folder + "/link.npy";
  write_npy(file, host_tensor(f32, {2}));
  std::filesystem::create_symlink("a.npy", link);

  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  TW_EXPECT_ERROR(EnvError, "File too large", [&] { write_npy(link, host_tensor(f32, {5000})); });
  TW_EXPECT_ERROR(EnvError, "File too large",
                  [&] { write_npy(folder + "/new.npy", host_tensor(f32, {5000})); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_npy(file).count(), 2);

  write_npy(link, host_tensor(f32, {3}));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_npy(file).count(), 3);
  const auto entries = std::filesystem::directory_iterator(folder);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2);
  std::filesystem::remove_all(folder);
}

}  // namespace tw
