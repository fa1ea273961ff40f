// SPDX-License-Identifier: BSD-2-Clause
// One attribute at a time: does weft meet the hint, and what does it answer?
//
// All functions are pure. A hint of zero leaves the choice to weft (fi_getinfo(3)); a hint that
// weft cannot meet is an Error with code FI_ENODATA that names attribute, value and limit. Hints of
// an enumerated type are plain numbers here: an application may hold any number in them, and C++
// must not load one that the enumeration does not have.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "offer.h"

namespace weft::fabric {

// Capabilities of an endpoint. The answer holds what was hinted, the modifiers that a missing one
// implies, and the domain capabilities, which cost nothing. Refused besides unknown bits:
// modifiers without the capability that they narrow, FI_MULTICAST without messages, and
// FI_RMA_EVENT where no peer may access memory.
Result<std::uint64_t> agree_caps(std::uint64_t hinted, const TypeOffer& offer);

// Capabilities of one context: the share in `applicable` of what its endpoint has. A hint must be
// a subset of that (fi_endpoint(3)); domain capabilities in it are ignored.
Result<std::uint64_t> agree_context_caps(std::uint64_t hinted, std::uint64_t endpoint,
                                         std::uint64_t applicable);

// Memory registration, fi_mr(3): the answer is the bits `required`, all of which must be hinted;
// other hinted bits are cleared, as they are not needed. FI_MR_BASIC, where it says all that is
// required, and FI_MR_SCALABLE, where nothing is, are echoed and must stand alone. Before API 1.5
// nothing else may be hinted, and no hint means whichever of them fits. Neither of the two says
// FI_MR_LOCAL: `local_mode` tells whether the program does, by FI_LOCAL_MR in fi_info::mode.
Result<int> agree_mr_mode(std::uint32_t api_version, int hinted, int required,
                          bool local_mode = false);

// The modes that fi_domain(3) takes: an answer of agree_mr_mode() for what the capabilities of its
// endpoints require, or for `all` that any endpoint does.
Result<int> check_mr_mode(std::uint32_t api_version, int mode, int required, int all);

// The application serialises as it says; weft takes every level and repeats it.
Result<fi_threading> agree_threading(int hinted);

// Connections and asynchronous registrations end in calls that read or wait (FI_PROGRESS_MANUAL),
// or also by the thread in the background (FI_PROGRESS_AUTO, unless the hints say otherwise). A
// contract may demand one of them, here and below: FI_PROGRESS_MANUAL cannot be raised,
// FI_PROGRESS_AUTO is the answer without a hint.
Result<fi_progress> agree_control_progress(int hinted, fi_progress demanded = FI_PROGRESS_UNSPEC);
// Whether control operations end without further calls, by the attributes that an object is opened
// with. Null, or FI_PROGRESS_UNSPEC, is the answer without a hint.
bool controls_automatically(const fi_domain_attr* attributes,
                            fi_progress demanded = FI_PROGRESS_UNSPEC);

// Data moves when the program polls or waits (FI_PROGRESS_MANUAL, unless it asks for more), or also
// by a thread in the background (FI_PROGRESS_AUTO).
Result<fi_progress> agree_data_progress(int hinted, fi_progress demanded = FI_PROGRESS_UNSPEC);

// Queues are always protected, whether the hints ask for it or not.
Result<fi_resource_mgmt> agree_resource_mgmt(int hinted);

// Maps and tables. Without a hint both: the address vector says which it is.
Result<fi_av_type> agree_av_type(int hinted);

// The type of the offer, unless another one is hinted.
Result<fi_ep_type> agree_ep_type(int hinted, const TypeOffer& offer);

// A context count: one each, of its own or shared (FI_SHARED_CONTEXT), never several.
Result<std::size_t> agree_context_count(const char* attribute, std::size_t hinted);

// Traffic class, fi_endpoint(3): any.
Result<std::uint32_t> agree_traffic_class(std::uint32_t hinted);

// The differentiated services code point (RFC 2474) that packets of that class carry.
std::uint8_t dscp_of(std::uint32_t traffic_class);

// Bits that must all be offered; the answer is the hint, or `usual` without one. `kind` says how
// libfabric names the bits.
Result<std::uint64_t> agree_bits(const char* attribute, fi_type kind, std::uint64_t hinted,
                                 std::uint64_t offered, std::uint64_t usual);

// An upper limit: the answer is the offered one, always.
Result<std::size_t> agree_limit(const char* attribute, std::size_t hinted, std::size_t offered);

// A size that costs memory: the answer is the hint, or `usual` without one.
Result<std::size_t> agree_size(const char* attribute, std::size_t hinted, std::size_t usual,
                               std::size_t largest);

}  // namespace weft::fabric
