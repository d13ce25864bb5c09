import { expect, test } from "vitest";
import { openExtraction } from "../../../helpers/files/extract_document.ts";

const extract = openExtraction();

test("reads SRT with the time of each cue", async () => {
  const srt =
    "1\r\n00:00:01,000 --> 00:00:03,500\r\n<i>Where is the</i> lighthouse?\r\n\r\n2\r\n01:01:02,000 --> 01:01:05,000\r\n" +
    "Behind the hill.\r\n{\\an8}I think.\r\n\r\nA stray line\r\n";
  expect((await extract("a.srt", srt)).pages).toEqual([
    "[0:00:01] Where is the lighthouse?\n[1:01:02] Behind the hill. I think.\nA stray line",
  ]);
});

test("reads WebVTT with names and comments, without styles, and each line of rolling captions once", async () => {
  const vtt =
    "WEBVTT - Harbor\n\nSTYLE\n::cue { color: red }\n\nNOTE made by hand\n\nintro\n00:01.000 --> 00:03.500 align:start\n" +
    "<v Mia>Where is <c.y>it</c> &amp; why?\n\n00:04.000 --> 00:06.000\nso the<00:04.100><c> ship</c>\n\n" +
    "00:06.000 --> 00:06.010\nso the ship\n\n00:06.010 --> 00:08.000\nso the ship\ncame<00:06.500><c> home</c>\n\n" +
    "00:09.000 --> 00:10.000\nLa la\n\n00:10.000 --> 00:11.000\nLa la\n";
  expect((await extract("a.vtt", vtt)).pages).toEqual([
    "NOTE made by hand\n[0:00:01] intro Mia: Where is it & why?\n[0:00:04] so the ship\n[0:00:06] came home\n" +
    "[0:00:09] La la\n[0:00:10] La la",
  ]);
});
