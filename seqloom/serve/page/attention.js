// Words that light up: point at a word, or move to it by keyboard, and see what it attended to, and who attended to it.

import {latest, post} from "./api.js";
import {el, fill} from "./dom.js";
import {chooseMap} from "./maps.js";

export function attentionWords(name) {
  const place = el("section", {hidden: true}), ask = latest();
  let never = false, chosen = 0;

  const update = (input, answer, picture = null, pixels = null) => never || answer === "" ? null : ask(
    signal => post("/attention", {run: name, input, answer}, signal), told => {
      place.hidden = !told.maps.length;
      never = told.why?.startsWith("no part") ?? false;  // of this model attends: other inputs need not be tried
      if (told.maps.length) show(told, picture, pixels);
    }, () => { place.hidden = true; });

  function show({maps, grid}, picture, pixels) {
    const image = map => picture && grid && map.source.length === grid[0] * grid[1] ? {picture, grid} : null;
    const all = maps.flatMap(map => map.names.map((words, number) => ({...map, words: `${map.title}, ${words}`, weights: map.weights[number], image: image(map), pixels})));
    chosen = Math.min(chosen, all.length - 1);
    chooseMap(place, all, chosen, number => { chosen = number; });
  }
  return {place, update};
}
