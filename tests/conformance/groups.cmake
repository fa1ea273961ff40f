# SPDX-License-Identifier: BSD-2-Clause
# Into which groups is the conformance suite cut? GoogleTest's filters; each test is in one of them.
set(operations "Operations/*")
set(matrix "Matrix*")
set(matching "Matching/*:Receives/*:Order/*:Arrival/*")
set(remote_access "RemoteAccess/*:Refusal/*")
# What depends on the registration contract; all of it runs under each one.
set(contracts "Regions/RegionContract.*:Regions/Segments.*:Contracts.*:Endpoints/Opening.*:OpeningAnswers.*")
# Rules that hold under a contract by name.
set(named_contracts "NamedContract.*:KeptContract.*")
set(local_descriptors "Local/*:LocalDescriptors*:DatagramLocalDescriptors.*")
# Bits of mr_mode that only FI_WEFT_CONTRACT has regions require. (They run without it, too.)
set(raw_keys "Regions/RawKeys.*:RawKeyCalls.*")
set(region_states "Regions/CountedRegions.*:Regions/BoundRegions.*:Regions/Refresh.*:RefreshedParts.*:UncountedAccess.*")
# Registrations that end with an event.
set(registrations "Registrations/*:AutomaticRegistration.*:BindingForRegistrations.*")
# The matrix of refused accesses. Two contracts together make all of its rows possible.
set(bad_accesses "Accesses/*")
# Sentences and warnings about refused accesses, over each link.
set(explanations "Explained/*")
# Keys of endpoints, connections and regions; one test runs the others in a process of its own.
set(authorization "Authorization*:Keyed/*")
# What the domain counts, over each link.
set(domain_statistics "Statistics/*:DomainStatisticsCalls.*:DomainStatisticsOfSharedPorts.*")
# Explanations are looked at.
set(not_offered "*/NotOffered.*")
set(crowds "ManyPeers*")
# Counts of objects and sizes of queues, each up to its limit.
set(limits "Limits/*:ContextSizes/*")
set(datagrams "*Datagram*:Multicast.*:-DatagramLocalDescriptors.*")
set(connections "Connecting.*:Connected.*:Connection*:ControlProgress.*")
# A resource that is full, for each row and column of fi_domain(3)'s table.
set(resources "*Resources/*")
# Everything in which a second thread of the test's process takes part.
# They are in these files, which are all that ThreadSanitizer gets.
set(files_with_threads threads counter cq_wait eq progress wait_set trigger deferred_work connection_threads
  control_threads threading_model asynchronous_registration region_hammer domain_statistics)
set(threads "Threaded/*:ThreadedAuto/*:Completion/CqWait*:Counters/CounterWait*:Events/*:Sets/*:AutoThreaded.*:OwnLoop*:DeferredWorkThreaded.*:ThreadsOfConnections.*:ControlThreads*:${registrations}")
# Of these, what ThreadSanitizer runs over the network, too.
set(threading_models "Threaded*/ThreadingModel.*_Rdm*")
# Its duration is a parameter: tools/ci/soak.py runs it for longer.
set(hammer "RegionHammer*")
# Targets that are left alone. Their memory is looked at when the other process says that it is done,
# which ThreadSanitizer does not hear: to it that is a race with the provider's thread.
set(left_alone "Auto/*:Far/*:FarProgressThread.*")
# Manual progress by one call alone; how many threads there are meanwhile, and after a domain.
set(manual_progress "Manual/*:ClosedDomain.*")
# They look whether the threads of their process sleep.
set(waiting "Idle/*:WaitingCost*")
# Thousands of objects: tools/ci/soak.py runs them.
set(long "ManyEndpoints/*")
# Where a stand-in for the drivers of devices is found.
set(device_memory "Devices/*:DeviceRules.*")
set(objects
  "-${operations}:${matrix}:${matching}:${remote_access}:${crowds}:${datagrams}:${connections}:${threads}:${left_alone}:${waiting}:${long}:${named_contracts}:${local_descriptors}:${bad_accesses}:${hammer}:${explanations}:${authorization}:${domain_statistics}:${limits}:${not_offered}:${manual_progress}:${resources}:${device_memory}")
