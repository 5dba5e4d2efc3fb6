# Targets from tw/LAYERS: folder tw/<name> becomes the static library tw_<name>, linked to the folders
# its line names and to nothing else of ours. What it borrows from outside is in TW_EXTERNAL_<name>.
set(TW_EXTERNAL_base fmt::fmt xxhash)
set(TW_EXTERNAL_runtime ${CMAKE_DL_LIBS} Threads::Threads)
set(TW_EXTERNAL_jit ${CMAKE_DL_LIBS})
set(TW_EXTERNAL_measure nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS} Threads::Threads)
set(TW_EXTERNAL_graph onnx_proto)
set(TW_EXTERNAL_cli CLI11::CLI11 nlohmann_json::nlohmann_json)

set_source_files_properties(${CMAKE_SOURCE_DIR}/tw/cli/parse.cpp
  ${CMAKE_SOURCE_DIR}/tw/capi/error.cpp PROPERTIES COMPILE_DEFINITIONS TW_VERSION="${PROJECT_VERSION}")

# Loops that measure what a machine can do: one file per instruction set, chosen at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/tw/measure/ceilings_avx2.cpp PROPERTIES
    COMPILE_OPTIONS "-mavx2;-mfma")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/tw/measure/ceilings_avx512.cpp PROPERTIES
    COMPILE_OPTIONS "-mavx512f;-mfma;-mprefer-vector-width=512")
endif()

add_library(tw_options INTERFACE)
target_include_directories(tw_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(tw_options INTERFACE
  -Wall -Wextra -Werror -Werror=switch -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=
  # g++ 12 sees overlap in "literal" + std::string where there is none (gcc bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# A layer appears with its first source file. cli holds the command itself: see tw/cli/main.cpp.
function(tw_add_layers)
  file(STRINGS ${CMAKE_SOURCE_DIR}/tw/LAYERS lines REGEX "^[a-z]")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([a-z]+):(.*)$" _ "${line}")
    set(name ${CMAKE_MATCH_1})
    string(REGEX MATCHALL "[a-z]+" uses "${CMAKE_MATCH_2}")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tw/${name}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
    if(NOT sources)
      continue()
    endif()
    add_library(tw_${name} STATIC ${sources})
    target_link_libraries(tw_${name} PUBLIC tw_options ${TW_EXTERNAL_${name}})
    if(name IN_LIST TW_UNOPTIMISED)  # a preset says so of layers that it builds but does not test
      target_compile_options(tw_${name} PRIVATE -O0)
    endif()
    foreach(use IN LISTS uses)
      if(TARGET tw_${use})
        target_link_libraries(tw_${name} PUBLIC tw_${use})
      endif()
    endforeach()
  endforeach()
  tw_add_emitter_version()
endfunction()

# Makes the function emitter_version() of tw/jit anew whenever a source that it hashes changes.
function(tw_add_emitter_version)
  if(NOT TARGET tw_jit)
    return()
  endif()
  set(out ${CMAKE_BINARY_DIR}/emitter_version.cpp)
  set(script ${CMAKE_SOURCE_DIR}/cmake/emitter_version.cmake)
  set(folders num math layout target ir passes emit jit)
  list(TRANSFORM folders REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/tw/\\1/*")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folders})
  add_custom_command(OUTPUT ${out} DEPENDS ${sources} ${script}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${out} -P ${script})
  target_sources(tw_jit PRIVATE ${out})
  add_custom_target(generated_sources DEPENDS ${out} ${CMAKE_BINARY_DIR}/onnx_proto/onnx.pb.h)
  add_dependencies(tw_jit generated_sources)
endfunction()

# Layers whose tests run no compiler and start no process: they also run under the sanitizers.
set(TW_CORE_LAYERS base num math layout target tensor ir lang interp limit runtime passes)
# Layers whose text and numbers must come out the same from clang++.
set(TW_CLANG_LAYERS base num math layout ir lang passes emit)

add_custom_target(core_tests)
add_custom_target(clang_tests)

# The command. libstdc++ is linked in, so that it runs where no compiler's runtime is installed.
function(tw_add_command)
  add_executable(tilewright ${CMAKE_SOURCE_DIR}/tw/cli/main.cpp)
  target_link_libraries(tilewright PRIVATE tw_cli -static-libstdc++ -static-libgcc)
endfunction()

# libtilewright.so: the C ABI and nothing else is to be seen of it.
function(tw_add_library)
  set(script ${CMAKE_SOURCE_DIR}/cmake/exports.map)
  add_library(tilewright_library SHARED $<TARGET_OBJECTS:tw_capi>)
  set_target_properties(tilewright_library PROPERTIES OUTPUT_NAME tilewright SOVERSION 1
    LINKER_LANGUAGE CXX LINK_DEPENDS ${script})
  target_link_libraries(tilewright_library PRIVATE tw_capi -static-libstdc++ -static-libgcc)
  target_link_options(tilewright_library PRIVATE LINKER:--version-script=${script} LINKER:-z,defs)
  target_include_directories(tilewright_library INTERFACE ${CMAKE_SOURCE_DIR}/tw/capi)
endfunction()

# tests/<name>/*.cpp becomes the program test_<name>, linked to tests/support and the layers named
# after it. Labels: core and clang after the lists above; each case is reported to reports/<name>.xml.
function(tw_add_test name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  add_executable(test_${name} ${sources} ${CMAKE_SOURCE_DIR}/tests/support/main.cpp)
  target_link_libraries(test_${name} PRIVATE test_support)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(test_${name} REUSE_FROM test_support)
  endif()
  foreach(use IN LISTS ARGN)
    target_link_libraries(test_${name} PRIVATE tw_${use})
  endforeach()
  target_compile_definitions(test_${name} PRIVATE TW_TEST_DIR="${CMAKE_CURRENT_SOURCE_DIR}/${name}")
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/reports/${name}.xml")
  if(name IN_LIST TW_CORE_LAYERS)
    add_dependencies(core_tests test_${name})
    set_property(TEST ${name} APPEND PROPERTY LABELS core)
  endif()
  if(name IN_LIST TW_CLANG_LAYERS)
    add_dependencies(clang_tests test_${name})
    set_property(TEST ${name} APPEND PROPERTY LABELS clang)
  endif()
endfunction()

# Adds a second run of a long test program, side by side with the first: each does half the tests.
function(tw_halve_test name)
  set(half "GTEST_TOTAL_SHARDS=2")
  add_test(NAME ${name}_2 COMMAND test_${name})
  set_tests_properties(${name}_2 PROPERTIES ENVIRONMENT
    "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/reports/${name}_2.xml;${half};GTEST_SHARD_INDEX=1")
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "${half};GTEST_SHARD_INDEX=0")
  set_tests_properties(${name} ${name}_2 PROPERTIES COST 1000)  # first
endfunction()
