// The sections of the page. Each is a file in sections/ that adds itself here, and stands in a block of its own, so that its names meet no
// others.
"use strict";

const SECTIONS = [];  // in the order of their places

// {id, place, every, fill}: fill(element, state, measure) puts head, text and figures into an empty element of that id. `place` orders the
// sections; `every` says when it is filled anew: "choice" (with every choice of the toolbar; the default), "study", or "page" (once). A section
// may have more functions, for others to call.
function addSection(section) {
  SECTIONS.push({every: "choice", ...section});
  SECTIONS.sort((a, b) => a.place - b.place);
}
