// SPDX-License-Identifier: BSD-2-Clause
// What became of the packets that came?
#include "station_hub.h"

namespace weft::udp {

std::string text_of(const roce::PacketDrops& drops, const Taken& taken) {
  std::string text = roce::text_of(drops);
  const std::string came_to_nothing = roce::text_of({{taken.repeated, "repeated"},
                                                     {taken.early, "too early"},
                                                     {taken.refused, "refused"},
                                                     {taken.unasked, "that answer nothing"},
                                                     {taken.senseless, "without sense"}});
  if (!text.empty() && !came_to_nothing.empty()) text += ", ";
  return text + came_to_nothing;
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
