# The tests that need a server, label servers: the conformance suite and random histories on every
# kind of server, and the programs of tests/servers. tools/servers starts what a test names and
# stops it with the test. Those of a module are added where the module is built.

# servers_test(NAME SECONDS KINDS command...): @VARIABLE@ in the command is filled in by
# tools/servers. KINDS: what to start, a list.
function(servers_test name seconds kinds)
  sheaf_test(servers_${name} servers ${seconds}
             ${PROJECT_SOURCE_DIR}/tools/servers run ${kinds} -- ${ARGN})
endfunction()

# The whole suite, and histories, on one URL.
function(servers_conformance name kinds url)
  servers_test(conformance_${name} 600 "${kinds}" $<TARGET_FILE:sheaf-conformance> ${url} --jobs 4)
  servers_test(histories_${name} 600 "${kinds}" $<TARGET_FILE:sheaf-conformance> ${url}
               --histories ${SHEAF_SERVER_HISTORIES} --jobs 4)
endfunction()

# The same store by another way (a pooler, shards, a cluster): the cases in which that way shows, with
# fewer races, and histories, which use all calls. tools/servers-soak has the rest.
set(servers_way_cases "@(append|batch|delete|list|queue|race|stale|store|sync|tenants|threads|watch)*")
function(servers_way name kinds url)
  servers_test(conformance_${name} 600 "${kinds}" env SHEAF_TEST_RACES=1000
               $<TARGET_FILE:sheaf-conformance> ${url} --case ${servers_way_cases} --jobs 4)
  servers_test(histories_${name} 600 "${kinds}" $<TARGET_FILE:sheaf-conformance> ${url}
               --histories ${SHEAF_SERVER_HISTORIES} --jobs 4)
endfunction()

# tests/servers/kills KIND ROUNDS, which starts its servers itself.
function(servers_kills kind rounds)
  sheaf_test(servers_kills_${kind} servers 300 ${tests_dir}/servers/kills ${kind} ${rounds})
endfunction()

# What the others rely on, on a store that needs no server.
sheaf_test(servers_stress_jsonl servers 120 $<TARGET_FILE:test_servers_stress> jsonl:@TMP@/store)
sheaf_test(servers_queue_jsonl servers 300 $<TARGET_FILE:test_servers_queue> jsonl:@TMP@/store)
sheaf_test(servers_search_jsonl servers 60 $<TARGET_FILE:test_servers_search> jsonl:@TMP@/store)
sheaf_test(servers_search_memory servers 60 $<TARGET_FILE:test_servers_search> memory:)

if(TARGET sheaf_postgres)
  servers_conformance(postgres postgres @SHEAF_TEST_POSTGRES@?migrate=1)
  # The old pooler differs from the new one in statements alone, which histories use all of.
  servers_test(histories_pgbouncer 600 pgbouncer $<TARGET_FILE:sheaf-conformance>
               @SHEAF_TEST_PGBOUNCER@?migrate=1 --histories ${SHEAF_SERVER_HISTORIES} --jobs 4)
  servers_way(pgbouncer_new pgbouncer-new @SHEAF_TEST_PGBOUNCER_NEW@?migrate=1)
  servers_way(shards shards @SHEAF_TEST_SHARDS@?migrate=1)
  servers_test(wire_postgres 300 postgres $<TARGET_FILE:test_servers_wire>
               @SHEAF_TEST_POSTGRES@?migrate=1)
  servers_test(queue_postgres 300 postgres $<TARGET_FILE:test_servers_queue>
               @SHEAF_TEST_POSTGRES@?migrate=1)
  servers_test(search_postgres 120 postgres $<TARGET_FILE:test_servers_search>
               @SHEAF_TEST_POSTGRES@?migrate=1)
  servers_test(search_shards 120 shards $<TARGET_FILE:test_servers_search>
               @SHEAF_TEST_SHARDS@?migrate=1)
  servers_test(postgres_schema 120 shards ${tests_dir}/servers/postgres_schema)
  servers_kills(postgres 3)
  servers_kills(standby 1)
endif()

if(TARGET sheaf_redis)
  servers_conformance(redis redis @SHEAF_TEST_REDIS@)
  servers_way(redis_cluster redis-cluster @SHEAF_TEST_REDIS_CLUSTER@)
  servers_test(wire_redis 300 redis $<TARGET_FILE:test_servers_wire> @SHEAF_TEST_REDIS@)
  servers_test(queue_redis 300 redis $<TARGET_FILE:test_servers_queue> @SHEAF_TEST_REDIS@)
  servers_test(search_redis 120 redis $<TARGET_FILE:test_servers_search> @SHEAF_TEST_REDIS@)
  if(BATS)
    sheaf_test(servers_redis servers 300 ${BATS} ${tests_dir}/servers/redis.bats)
  endif()
  servers_kills(redis 3)
  servers_kills(redis-everysec 3)
  servers_kills(redis-cluster 1)
endif()
