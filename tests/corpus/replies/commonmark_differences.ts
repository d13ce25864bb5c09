/** Examples of CommonMark 0.31.2 that Parlor shows in another way, by reason. */
export const DIFFERENCES: Readonly<Record<string, readonly number[]>> = {
  // `<Warning>`, `<script>`, `<?php`, `<a>` without an address, an incomplete tag. Dropping them loses what was said.
  "angle brackets of what isn't HTML that a message may contain are text": [
    ...[150, 156, 157, 158, 163, 170, 171, 172, 173, 176, 178, 180, 181, 182, 201, 491, 494, 524, 536, 613, 614],
    ...[615, 616, 617, 623, 627, 628, 629],
  ],
  // https://github.github.com/gfm/#autolinks-extension-
  "URLs and mail addresses become links by themselves, as in GFM": [602, 608, 611, 612],
  // 2*3*4
  "signs between digits are arithmetic": [356],
};
