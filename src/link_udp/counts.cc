// SPDX-License-Identifier: BSD-2-Clause
// What became of the packets that came?
#include <initializer_list>

#include "port4791_relay.h"
#include "station_hub.h"

namespace weft::udp {

std::uint64_t sum(const Drops& drops) {
  return drops.malformed + drops.wrong_crc + drops.wrong_pkey + drops.wrong_queue_pair +
         drops.wrong_queue_key + drops.unknown_flow + drops.wrong_peer + drops.forged +
         drops.not_foreign;
}

namespace {

struct Reason {
  std::uint64_t count;
  const char* text;
};

std::string text_of(std::initializer_list<Reason> reasons) {
  std::string text;
  for (const auto& [count, reason] : reasons) {
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + " " + reason;
  }
  return text;
}

}  // namespace

std::string text_of(const Drops& drops, const Taken& taken) {
  return text_of({{drops.malformed, "malformed"},
                  {drops.wrong_crc, "with a wrong ICRC"},
                  {drops.wrong_pkey, "with a wrong P_Key"},
                  {drops.wrong_queue_pair, "for another queue pair"},
                  {drops.wrong_queue_key, "with a wrong Q_Key"},
                  {drops.unknown_flow, "of no known flow"},
                  {drops.wrong_peer, "of another peer's flow"},
                  {drops.forged, "handed on by a stranger"},
                  {drops.not_foreign, "handed on, but of no foreign peer"},
                  {taken.repeated, "repeated"},
                  {taken.early, "too early"},
                  {taken.refused, "refused"},
                  {taken.unasked, "that answer nothing"},
                  {taken.senseless, "without sense"}});
}

std::string text_of(const RelayCounts& counts) {
  return text_of({{counts.malformed, "malformed"},
                  {counts.wrong_crc, "with a wrong ICRC"},
                  {counts.no_endpoints, "for a queue pair that is no endpoint's"},
                  {counts.absent, "for an endpoint that is not there"},
                  {counts.no_room, "for which there was no room"},
                  {counts.unread, "that came while nobody looked"}});
}

// Flows that have gone have left theirs.
void StationHub::count_in(Taken& taken, const Context& context) {
  if (context.out != nullptr) taken.unasked += context.out->unasked();
  if (context.in == nullptr) return;
  const transport::Responder::Counts& requests = context.in->counts();
  taken.repeated += requests.duplicates;
  taken.early += requests.dropped;
  taken.refused += requests.refused;
  taken.senseless += context.in->senseless();
}

Taken StationHub::taken() const {
  Taken all = taken_;
  for (const auto& context : contexts_) {
    if (context != nullptr) count_in(all, *context);
  }
  return all;
}

}  // namespace weft::udp
