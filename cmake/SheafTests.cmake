# The tests. A file in the right folder is a test; nothing is registered by hand.
#
#   tests/unit/<folder>/test_<name>.c  test_<folder>_<name>      label unit
#   tests/conformance/*.c              sheaf-conformance URL     label conformance
#                                      (all cases; SHEAF_HISTORIES random histories)
#   tests/crash/test_<name>.c          test_crash_<name>         label crash
#   tests/fault/test_<name>.c          test_fault_<name>         label fault
#   tests/property/test_<name>.c       test_property_<name>      label property
#   tests/servers/test_<name>.c        test_servers_<name> URL   label servers (see below)
#   tests/agent                        agent-driver, run.py      label agent
#   tests/html                         run.py                    label html
#   tests/cli/<name>.bats              (bats)                    label cli
#   examples/<name>.c                  example_<name>            label example
#   bench/*.c                          sheaf-bench               label bench
#   fuzz/fuzz_<name>.c                 fuzz_<name>               label fuzz (see below)
#
# Files in tests/crash, tests/fault, tests/property and tests/servers that do not begin with test_ serve every program of their
# folder, tests/support serves all of them.
#
# A test runs in an empty directory of its own, which is also its HOME and TMPDIR and goes when
# the test ends. Exit code 77 means skipped.

pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
find_program(BATS bats)

set(tests_dir ${PROJECT_SOURCE_DIR}/tests)
set(in_tmp ${PROJECT_SOURCE_DIR}/cmake/in_tmp.sh)

# The whole library with its inner functions visible.
add_library(sheaf_internals STATIC ${layer_objects})
set_target_properties(sheaf_internals PROPERTIES LINKER_LANGUAGE C)
target_include_directories(sheaf_internals INTERFACE
                           ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                           ${tests_dir})
target_link_libraries(sheaf_internals INTERFACE PkgConfig::YYJSON Threads::Threads ${CMAKE_DL_LIBS} m)

file(GLOB support_sources CONFIGURE_DEPENDS ${tests_dir}/support/*.c)
if(support_sources)
  add_library(sheaf_support STATIC ${support_sources})
  target_link_libraries(sheaf_support PUBLIC sheaf_internals PkgConfig::CMOCKA)
else()
  add_library(sheaf_support INTERFACE)
  target_link_libraries(sheaf_support INTERFACE sheaf_internals PkgConfig::CMOCKA)
endif()

# sheaf_test(NAME LABEL SECONDS command...): registers a command, with @TMP@ in it replaced by the
# test's own directory.
function(sheaf_test name label seconds)
  set(launcher)
  if(label MATCHES "^(unit|conformance)$")
    set(launcher ${SHEAF_TEST_LAUNCHER})
  endif()
  math(EXPR seconds "${seconds} * ${SHEAF_TEST_SLOWDOWN}")
  add_test(NAME ${name} COMMAND ${in_tmp} ${launcher} ${ARGN})
  set_tests_properties(${name} PROPERTIES
                       LABELS ${label} TIMEOUT ${seconds} SKIP_RETURN_CODE 77
                       COST ${seconds} # the long ones begin first, or the last runs alone
                       ENVIRONMENT "SHEAF_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/sheaf;SHEAF_SOURCE_DIR=${PROJECT_SOURCE_DIR};SHEAF_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()

function(sheaf_test_program target label seconds)
  add_executable(${target} ${ARGN})
  target_compile_definitions(${target} PRIVATE
                             SHEAF_TEST_DATA="${tests_dir}/data")
  target_link_libraries(${target} PRIVATE sheaf_support)
  sheaf_test(${target} ${label} ${seconds} $<TARGET_FILE:${target}>)
endfunction()

file(GLOB unit_sources CONFIGURE_DEPENDS ${tests_dir}/unit/*/test_*.c)
foreach(source ${unit_sources})
  cmake_path(GET source STEM stem)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(GET folder FILENAME folder)
  string(REGEX REPLACE "^test_" "" name ${stem})
  if(NOT folder STREQUAL cli)
    sheaf_test_program(test_${folder}_${name} unit 120 ${source})
    continue()
  endif()
  # The command is no part of the library: linked as the command is.
  add_executable(test_cli_${name} ${source} ${tests_dir}/support/fail_alloc.c
                 $<TARGET_OBJECTS:sheaf_base>)
  target_include_directories(test_cli_${name} PRIVATE include src tests)
  target_link_libraries(test_cli_${name} PRIVATE sheaf_command sheaf PkgConfig::CMOCKA
                        PkgConfig::YYJSON Threads::Threads)
  sheaf_test(test_cli_${name} unit 120 $<TARGET_FILE:test_cli_${name}>)
endforeach()
# These make the compressed files they read.
foreach(name test_convert_codex test_convert_hostile)
  target_link_libraries(${name} PRIVATE PkgConfig::ZSTD)
  add_dependencies(${name} sheaf_zstd)
endforeach()

foreach(kind crash fault property)
  file(GLOB sources CONFIGURE_DEPENDS ${tests_dir}/${kind}/*.c)
  set(shared ${sources})
  list(FILTER shared EXCLUDE REGEX "/test_[^/]*\\.c$")
  list(FILTER sources INCLUDE REGEX "/test_[^/]*\\.c$")
  set(shared_library)
  if(shared)
    set(shared_library sheaf_support_${kind})
    add_library(${shared_library} STATIC ${shared})
    target_link_libraries(${shared_library} PUBLIC sheaf_support)
  endif()
  foreach(source ${sources})
    cmake_path(GET source STEM stem)
    string(REGEX REPLACE "^test_" "" name ${stem})
    sheaf_test_program(test_${kind}_${name} ${kind} 1200 ${source})
    target_link_libraries(test_${kind}_${name} PRIVATE ${shared_library})
  endforeach()
endforeach()

file(GLOB conformance_sources CONFIGURE_DEPENDS ${tests_dir}/conformance/*.c)
if(conformance_sources)
  # The suite sees what authors of stores see, the public headers and libsheaf.
  add_executable(sheaf-conformance ${conformance_sources})
  target_link_libraries(sheaf-conformance PRIVATE sheaf Threads::Threads)
  sheaf_test(conformance_memory conformance 900 $<TARGET_FILE:sheaf-conformance> memory:
             --case ${SHEAF_CONFORMANCE_CASES})
  sheaf_test(conformance_jsonl conformance 900 $<TARGET_FILE:sheaf-conformance> jsonl:@TMP@/store
             --case ${SHEAF_CONFORMANCE_CASES})
  sheaf_test(conformance_histories conformance 900 $<TARGET_FILE:sheaf-conformance>
             "jsonl:@TMP@/store?durability=process" --histories ${SHEAF_HISTORIES})
endif()

# Programs that work on any store, given its URL, and are linked as users link theirs.
file(GLOB servers_sources CONFIGURE_DEPENDS ${tests_dir}/servers/*.c)
set(servers_shared ${servers_sources})
list(FILTER servers_shared EXCLUDE REGEX "/test_[^/]*\\.c$")
list(FILTER servers_sources INCLUDE REGEX "/test_[^/]*\\.c$")
foreach(source ${servers_sources})
  cmake_path(GET source STEM stem)
  string(REGEX REPLACE "^test_" "" name ${stem})
  add_executable(test_servers_${name} ${source} ${servers_shared})
  target_link_libraries(test_servers_${name} PRIVATE sheaf Threads::Threads)
endforeach()
include(cmake/SheafServers.cmake)

# The agent as a process, against a server that plays scripts.
if(EXISTS ${tests_dir}/agent/driver.c)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_executable(agent-driver ${tests_dir}/agent/driver.c)
  target_link_libraries(agent-driver PRIVATE sheaf Threads::Threads)
  foreach(format anthropic openai_chat openai_responses gemini client example)
    sheaf_test(agent_${format} agent 120 ${Python3_EXECUTABLE} ${tests_dir}/agent/run.py
               $<TARGET_FILE:agent-driver> -k Test_${format}.)
  endforeach()
endif()

# Exported pages in a real browser.
if(TARGET sheaf_cli)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  foreach(part page xss)
    sheaf_test(html_${part} html 180 ${Python3_EXECUTABLE} ${tests_dir}/html/run.py
               $<TARGET_FILE:sheaf_cli> Test_${part})
  endforeach()
endif()

# Examples see what users see: the public headers and libsheaf.
file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source ${example_sources})
  cmake_path(GET source STEM name)
  add_executable(example_${name} ${source})
  target_link_libraries(example_${name} PRIVATE sheaf)
  sheaf_test(example_${name} example 60 $<TARGET_FILE:example_${name}>)
endforeach()

# Fuzz targets; without a fuzzer they run on what tests/data holds, as it is and changed.
# sheaf_fuzz(NAME SOURCE CHOICES COPIES FOLDERS...): CHOICES bytes before what is in a file choose,
# each file is played COPIES times.
function(sheaf_fuzz name source choices copies)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/fuzz/${source} ${PROJECT_SOURCE_DIR}/fuzz/mutate.c)
  target_link_libraries(${name} PRIVATE sheaf_internals)
  target_compile_definitions(${name} PRIVATE FUZZ_CHOICES=${choices})
  if(SHEAF_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/fuzz/replay.c)
    list(TRANSFORM ARGN PREPEND ${tests_dir}/data/)
    sheaf_test(${name} fuzz 120 $<TARGET_FILE:${name}> ${copies} ${ARGN})
  endif()
endfunction()

sheaf_fuzz(fuzz_stream fuzz_stream.c 2 200 replies lists)

# sheaf_fuzz_import(KIND FORMAT FILE LOG): files of one kind; LOG is 1 where they grow by lines.
function(sheaf_fuzz_import kind format file log)
  set(name fuzz_import_${kind})
  sheaf_fuzz(${name} fuzz_import.c 0 10 fuzz/${kind})
  target_compile_definitions(${name} PRIVATE FUZZ_FORMAT="${format}" FUZZ_FILE="${file}"
                             FUZZ_LOG=${log})
  target_link_libraries(${name} PRIVATE PkgConfig::ZSTD)
  add_dependencies(${name} sheaf_zstd)
endfunction()

sheaf_fuzz_import(claude-code claude-code x.jsonl 1)
sheaf_fuzz_import(codex codex rollout-x.jsonl 1)
sheaf_fuzz_import(pi pi x.jsonl 1)
sheaf_fuzz_import(dive dive x.jsonl 1)
sheaf_fuzz_import(gemini-cli gemini-cli session-x.jsonl 1)
sheaf_fuzz_import(gemini-chat gemini-cli session-x.json 0)
sheaf_fuzz_import(opencode opencode x.json 0)
sheaf_fuzz_import(opencode-storage opencode session/global/ses_x.json 0)
target_compile_definitions(fuzz_import_opencode-storage PRIVATE FUZZ_STORAGE)
sheaf_fuzz_import(uimessage uimessage x.json 0)
sheaf_fuzz_import(chatgpt chatgpt x.json 0)

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
if(bench_sources)
  # What users link: libsheaf, which finds the modules beside it. The rest is for the bare sides.
  add_executable(sheaf-bench ${bench_sources})
  target_link_libraries(sheaf-bench PRIVATE sheaf PkgConfig::YYJSON PkgConfig::LIBPQ
                        PkgConfig::HIREDIS Threads::Threads)
  target_compile_definitions(sheaf-bench PRIVATE
                             SHEAF_BENCH_SAMPLES="${tests_dir}/data/import")
  sheaf_test(bench_short bench 900 ${PROJECT_SOURCE_DIR}/tools/servers run
             postgres redis redis-everysec -- $<TARGET_FILE:sheaf-bench> --short)
  set_tests_properties(bench_short PROPERTIES RUN_SERIAL ON)
  # Memory is measured: instrumented programs need more of it.
  if(NOT SHEAF_SANITIZE)
    sheaf_test(import_soak cli 300 ${PROJECT_SOURCE_DIR}/tools/import-soak --mb 50
               --bin $<TARGET_FILE_DIR:sheaf-bench> --dir @TMP@)
  endif()
endif()

file(GLOB bats_files CONFIGURE_DEPENDS ${tests_dir}/cli/*.bats)
if(bats_files AND NOT BATS)
  message(STATUS "bats not found: tests/cli will not run")
elseif(TARGET sheaf_cli)
  foreach(file ${bats_files})
    cmake_path(GET file STEM name)
    sheaf_test(cli_${name} cli 300 ${BATS} ${file})
  endforeach()
endif()

if(SHEAF_COVERAGE)
  find_program(GCOVR gcovr REQUIRED)
  add_custom_target(coverage
                    COMMAND ${GCOVR} --root ${PROJECT_SOURCE_DIR} --filter "src/"
                            --exclude-throw-branches --print-summary
                            --html-details ${PROJECT_BINARY_DIR}/coverage.html
                            ${PROJECT_BINARY_DIR}
                    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                    VERBATIM)
endif()
