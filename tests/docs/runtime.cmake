# The listings of docs/runtime.md, compiled and run as printed.
set(page ${CMAKE_SOURCE_DIR}/docs/runtime.md)
set(program ${CMAKE_CURRENT_BINARY_DIR}/runtime_page.cpp)
add_custom_command(OUTPUT ${program}
  DEPENDS ${page} ${CMAKE_CURRENT_SOURCE_DIR}/docs/runtime.py
  COMMAND ${TW_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/docs/runtime.py ${page} ${program})
add_executable(runtime_page ${program})
target_link_libraries(runtime_page PRIVATE tw_jit tw_lang)
add_test(NAME docs_runtime COMMAND runtime_page WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
string(CONCAT expected "^1 0\n"
  "shift_rows: output 'Y' overlaps input 'X': outputs may overlap nothing\n"
  "cpu1 kc=64\n"
  "7 1 30000 1\n$")
set_tests_properties(docs_runtime PROPERTIES PASS_REGULAR_EXPRESSION "${expected}")
