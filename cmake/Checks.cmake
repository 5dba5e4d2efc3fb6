# Checks of the sources themselves: tests with the label "checks", which need no build.
find_program(TW_PYTHON3 python3 REQUIRED)

function(tw_add_check name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS checks)
endfunction()

function(tw_add_checks)
  tw_add_check(layers ${TW_PYTHON3} tools/check_layers.py)
  tw_add_check(budgets ${TW_PYTHON3} tools/check_budgets.py)
  tw_add_check(lint ${TW_PYTHON3} tools/lint.py)
  tw_add_check(cases_table ${TW_PYTHON3} tools/check_cases.py)
  tw_add_check(rows ${TW_PYTHON3} tools/check_rows.py)
  tw_add_check(performance ${TW_PYTHON3} tools/performance --check)
  tw_add_check(format ${TW_PYTHON3} tools/format)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/tools/*_test.py)
  foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME_WE)
    tw_add_check(tools.${name} ${TW_PYTHON3} ${script})
  endforeach()
endfunction()

# tests/<path> is a Python test that needs the packages of requirements.txt. ./runtests makes .venv;
# in a build without it these tests are left out.
function(tw_add_python_test path)
  if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    get_filename_component(name ${path} NAME_WE)
    add_test(NAME python.${name} COMMAND ${CMAKE_SOURCE_DIR}/.venv/bin/python
      ${CMAKE_CURRENT_SOURCE_DIR}/${path} ${ARGN})
    set_tests_properties(python.${name} PROPERTIES LABELS python)
  endif()
endfunction()

# The C++ program of README.md, as printed, compiled and run: it must print `expected`.
function(tw_add_readme_test expected)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/README.md)
  file(READ ${CMAKE_SOURCE_DIR}/README.md text)
  string(FIND "${text}" "```cpp\n" from)
  math(EXPR from "${from} + 7")
  string(SUBSTRING "${text}" ${from} -1 text)
  string(FIND "${text}" "\n```" to)
  string(SUBSTRING "${text}" 0 ${to} code)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/readme.cpp CONTENT "@code@\n" @ONLY)
  add_executable(readme ${CMAKE_CURRENT_BINARY_DIR}/readme.cpp)
  target_link_libraries(readme PRIVATE ${ARGN})
  add_test(NAME readme COMMAND readme)
  set_tests_properties(readme PROPERTIES PASS_REGULAR_EXPRESSION "^${expected}\n$")
endfunction()
