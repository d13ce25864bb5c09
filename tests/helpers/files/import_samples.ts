/**
 * Exports of other programs, made by hand, each with what a user has written or got in it: the reference that an import
 * is measured against. What stays behind is named in the report. Their shapes are in docs/protocols/imports.md.
 */
import { type Zippable, zipSync } from "fflate";
import type { ImportKind } from "../../../services/import_export/import_item.ts";

/** An export. */
export interface ImportSample {
  kind: ImportKind;
  /** File name. */
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
  /** Texts of its fields, each of which must be found in what was imported. */
  fields: readonly string[];
  /** Codes of the lines in the report, without those about other files. */
  lines: readonly string[];
}

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const zip = (files: Zippable) => zipSync(files) as Uint8Array<ArrayBuffer>;
const text = (text: string) => [{ type: "text", text }];

function lmStudio(): ImportSample {
  const said = (role: string, more: object) => ({
    currentlySelected: 0,
    versions: [{ type: "singleStep", role, ...more }],
  });
  return {
    kind: "lmstudio",
    name: "1700000000000.conversation.json",
    bytes: json({
      name: "LM harbor",
      createdAt: 1_700_000_000_000,
      perChatPredictionConfig: { fields: [{ key: "llm.prediction.systemPrompt", value: "LM: be calm." }] },
      messages: [
        said("user", { content: [...text("LM: where is the ship?"), { type: "file" }] }),
        {
          currentlySelected: 1,
          versions: [
            { type: "singleStep", role: "assistant", content: text("LM: an older reply") },
            {
              type: "multiStep",
              role: "assistant",
              senderInfo: { senderName: "lm-model" },
              steps: [
                { type: "contentBlock", style: { type: "thinking" }, content: text("LM: a thought") },
                { type: "contentBlock", content: text("LM: at the pier") },
                { type: "toolStatus" },
              ],
            },
          ],
        },
      ],
    }),
    fields: [
      ...["LM harbor", "LM: be calm.", "LM: where is the ship?", "LM: an older reply", "LM: a thought"],
      ...["LM: at the pier", "lm-model"],
    ],
    lines: ["other_parts"],
  };
}

function jan(): ImportSample {
  const said = (role: string, content: unknown[]) =>
    JSON.stringify({ id: role, role, content, created_at: 1_700_000_000 });
  const value = (value: string) => ({ type: "text", text: { value } });
  return {
    kind: "jan",
    name: "jan.zip",
    bytes: zip({
      "threads/a/thread.json": json({ id: "a", title: "Jan harbor", assistants: [{ instructions: "Jan: be calm." }] }),
      "threads/a/messages.jsonl": new TextEncoder().encode(
        `${said("user", [value("Jan: where?"), { type: "image_url" }])}\n${
          said("assistant", [value("<think>\nJan: a thought</think>\nJan: there")])
        }\n`,
      ),
      "assistants/jan/assistant.json": json({}),
    }),
    fields: ["Jan harbor", "Jan: be calm.", "Jan: where?", "Jan: a thought", "Jan: there"],
    lines: ["other_parts"],
  };
}

function llamaCpp(): ImportSample {
  return {
    kind: "llamacpp",
    name: "llama-export.json",
    bytes: json({
      conv: { id: "c", name: "Llama harbor", currNode: "3", lastModified: 1_700_000_000_000 },
      messages: [
        { id: "0", type: "root", role: "system", parent: null, content: "" },
        {
          id: "1",
          role: "user",
          parent: "0",
          content: "Llama: where?",
          extra: [{ type: "TEXT", name: "log.txt", content: "Llama: the log" }, { type: "AUDIO" }],
        },
        { id: "2", role: "assistant", parent: "1", content: "Llama: an older reply" },
        { id: "3", role: "assistant", parent: "1", content: "Llama: there", reasoningContent: "Llama: a thought" },
      ],
    }),
    fields: [
      ...["Llama harbor", "Llama: where?", "log.txt", "Llama: the log", "Llama: an older reply", "Llama: there"],
      "Llama: a thought",
    ],
    lines: ["other_parts"],
  };
}

function cherryStudio(): ImportSample {
  const assistants = JSON.stringify({
    assistants: [{ prompt: "Cherry: be calm.", topics: [{ id: "t", name: "Cherry harbor" }] }],
  });
  return {
    kind: "cherrystudio",
    name: "data.json",
    bytes: json({
      version: 5,
      localStorage: { "persist:cherry-studio": JSON.stringify({ assistants, llm: "{}" }) },
      indexedDB: {
        topics: [{
          id: "t",
          messages: [
            { id: "1", role: "user", blocks: ["b1"], createdAt: "2025-01-01T00:00:00Z" },
            { id: "2", role: "assistant", askId: "1", blocks: ["b2", "b3", "b5"], model: { name: "cherry-one" } },
            { id: "3", role: "assistant", askId: "1", blocks: ["b4"], model: { name: "cherry-two" } },
          ],
        }],
        message_blocks: [
          { id: "b1", type: "main_text", content: "Cherry: where?" },
          { id: "b2", type: "thinking", content: "Cherry: a thought" },
          { id: "b3", type: "main_text", content: "Cherry: there" },
          { id: "b4", type: "main_text", content: "Cherry: elsewhere" },
          { id: "b5", type: "tool", content: {} },
        ],
      },
    }),
    fields: [
      ...["Cherry harbor", "Cherry: be calm.", "Cherry: where?", "Cherry: a thought", "Cherry: there"],
      ...["Cherry: elsewhere", "cherry-one", "cherry-two"],
    ],
    lines: ["service_keys_left_out", "other_parts"],
  };
}

function koboldCpp(): ImportSample {
  return {
    kind: "koboldcpp",
    name: "saved_story.json",
    bytes: json({
      gamestarted: true,
      memory: "Kobold: be calm.",
      authorsnote: "Kobold: it rains.",
      worldinfo: [
        { key: "kobold-mill, wheel", content: "Kobold: an old mill", comment: "Kobold lore" },
        { key: "", content: "", comment: "" },
      ],
      prompt: "Kobold: the start",
      actions: ["{{[INPUT]}}Kobold: where?{{[OUTPUT]}}", "Kobold: there"],
      savedsettings: { opmode: 4 },
    }),
    fields: [
      ...["Kobold: be calm.", "Kobold: it rains.", "kobold-mill", "wheel", "Kobold: an old mill", "Kobold lore"],
      ...["Kobold: the start", "Kobold: where?", "Kobold: there"],
    ],
    lines: ["empty_entries"],
  };
}

function textGeneration(): ImportSample {
  return {
    kind: "textgen",
    name: "textgen.zip",
    bytes: zip({
      "logs/chat/Webui harbor/20240101-10-00-00.json": json({
        internal: [["<|BEGIN-VISIBLE-CHAT|>", "Webui: welcome"], ["Webui: where?", "Webui: there"]],
        visible: [["", "Webui: welcome"], ["Webui: where?", "Webui: there"]],
        metadata: {
          assistant_1: {
            timestamp: "2024-01-01 10:00:00",
            versions: [{ content: "Webui: older" }, { content: "Webui: there" }],
          },
        },
      }),
      "settings.yaml": new TextEncoder().encode("x: 1"),
    }),
    fields: ["Webui harbor 20240101-10-00-00", "Webui: welcome", "Webui: where?", "Webui: there", "Webui: older"],
    lines: [],
  };
}

function characterAi(): ImportSample {
  return {
    kind: "characterai",
    name: "cai_dump.json",
    bytes: json({
      info: { character: { name: "CAI fox" } },
      histories: {
        histories: [{
          external_id: "h",
          msgs: [
            { text: "CAI: where?", src: { name: "Ann", is_human: true } },
            { text: "CAI: there", src: { name: "CAI fox", is_human: false } },
          ],
        }],
      },
    }),
    fields: ["CAI fox", "CAI: where?", "CAI: there"],
    lines: [],
  };
}

function backyard(): ImportSample {
  return {
    kind: "backyard",
    name: "reed.byaf",
    bytes: zip({
      "manifest.json": json({
        schemaVersion: 1,
        author: { name: "BYAF author" },
        characters: ["characters/a/character.json"],
        scenarios: ["scenarios/1.json"],
      }),
      "characters/a/character.json": json({
        id: "a",
        name: "BYAF reed",
        displayName: "BYAF reed fox",
        persona: "BYAF: waits.",
        createdAt: "2026-01-01T00:00:00Z",
        loreItems: [{ key: "byaf-mill, byaf-water", value: "BYAF: an old mill" }],
        images: [],
      }),
      "scenarios/1.json": json({
        title: "BYAF harbor",
        narrative: "BYAF: it rains.",
        formattingInstructions: "BYAF: be calm.",
        firstMessages: [{ characterID: "a", text: "BYAF: ahoy" }],
        exampleMessages: [{ characterID: "a", text: "BYAF: an example" }],
        grammar: "root ::= x",
        messages: [
          { type: "human", text: "BYAF: where?", createdAt: "2026-01-02T00:00:00Z" },
          {
            type: "ai",
            outputs: [
              { text: "BYAF: an older reply", activeTimestamp: "2026-01-02T00:00:01Z" },
              { text: "BYAF: there", activeTimestamp: "2026-01-02T00:00:09Z" },
            ],
          },
        ],
      }),
    }),
    fields: [
      ...["BYAF author", "BYAF reed", "BYAF reed fox", "BYAF: waits.", "byaf-mill", "byaf-water", "BYAF: an old mill"],
      ...["BYAF harbor", "BYAF: it rains.", "BYAF: be calm.", "BYAF: ahoy", "BYAF: an example", "BYAF: where?"],
      ...["BYAF: an older reply", "BYAF: there"],
    ],
    lines: ["other_parts", "backyard_sampling"],
  };
}

function claude(): ImportSample {
  const said = (sender: string, content: unknown[]) => ({
    uuid: sender,
    sender,
    text: "",
    content,
    created_at: "2026-01-01T00:00:00Z",
    attachments: [],
    files: [],
  });
  return {
    kind: "claude",
    name: "claude-export.zip",
    bytes: zip({
      "conversations.json": json([{
        uuid: "c",
        name: "Claude harbor",
        created_at: "2026-01-01T00:00:00Z",
        updated_at: "2026-01-01T00:00:00Z",
        chat_messages: [said("human", text("Claude: where?")), said("assistant", text("Claude: there"))],
      }]),
      "projects.json": json([{
        uuid: "p",
        name: "Mill",
        prompt_template: "Be calm.",
        docs: [{ uuid: "d", filename: "claude-doc.md", content: "Claude: a document" }],
      }]),
      "memories.json": json([{
        conversations_memory: "Claude: likes foxes.",
        project_memories: { p: "Claude: uses oak." },
        account_uuid: "u",
      }]),
    }),
    fields: [
      ...["Claude harbor", "Claude: where?", "Claude: there", "claude-doc.md", "Claude: a document"],
      ...["Claude: likes foxes.", "Claude: uses oak."],
    ],
    lines: ["claude_instructions"],
  };
}

/** An export of each program that has no other sample. */
export function listImportSamples(): ImportSample[] {
  return [
    ...[lmStudio(), jan(), llamaCpp(), cherryStudio(), koboldCpp(), textGeneration(), characterAi(), backyard()],
    claude(),
  ];
}
