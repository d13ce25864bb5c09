/** A long chat with a character, and a naive prompt assembly that drops the oldest message each turn. */

/** One message as it is sent. */
export interface Said {
  role: string;
  content: string;
}

/** Turns of the chat. */
export const TURNS = 40;
/** The author's note and the messages behind it. */
export const NOTE = { text: "The night is calm.", depth: 2 };
const INSTRUCTIONS = "Answer as {{char}} in one or two sentences.";

/** The character: entries of a lorebook that fire always and by a key, a choice by chance, examples. */
export const KEEPER = {
  name: "Ada",
  description: "{{char}} keeps the lighthouse of a small island and writes down the weather, the ships and the birds " +
    "of every day. She knows each rock by its name and has not left the island for eleven years.",
  personality: "dry, exact, glad of company and slow to say so",
  scenario: "{{user}} has come over with the post boat in {{random:May,June,September}} and stays for the night.",
  mes_example: "<START>\n{{user}}: Is it lonely here?\n{{char}}: Forty-one ships this week. I count that as company.",
  first_mes: "Mind the step, it is wet. You must be {{user}}.",
  post_history_instructions: INSTRUCTIONS,
  character_book: {
    name: "Island",
    extensions: {},
    entries: [
      {
        id: 1,
        keys: [],
        constant: true,
        content: "The island has one well and no trees.",
        extensions: {},
        enabled: true,
        insertion_order: 10,
        position: "after_char",
      },
      {
        id: 2,
        keys: ["lamp"],
        content: "@@depth 1\nThe lamp burns paraffin and turns once in ten seconds.",
        enabled: true,
        insertion_order: 20,
        extensions: {},
      },
    ],
  },
};

const ASKED = ["the lamp", "the storm of last winter", "the seals", "your notebook", "the ship on the reef"];

/** The user message of a turn, from 0. */
export function question(n: number): string {
  return `Evening number ${n}. The wind has turned and the boat did not come, so we sit by the stove again and I ask ` +
    `you about ${ASKED[n % ASKED.length]}, because yesterday you began to tell me of it and then the bell rang and ` +
    "you went up to look.";
}

/** The naive assembly. */
export class NaiveChat {
  readonly #history: Said[];

  constructor(greeting: string) {
    this.#history = [{ role: "assistant", content: greeting }];
  }

  /** Adds a message. */
  say(role: string, content: string): void {
    this.#history.push({ role, content });
  }

  /** Returns the prompt: the fixed start, and as many of the newest messages as fit. */
  async prompt(system: string, fits: (messages: Said[]) => Promise<boolean>): Promise<Said[]> {
    for (;;) {
      const messages = this.#prompt(system);
      if (this.#history.length <= 1 || await fits(messages)) return messages;
      this.#history.shift();
    }
  }

  #prompt(system: string): Said[] {
    const place = Math.max(0, this.#history.length - NOTE.depth);
    return [
      { role: "system", content: system },
      ...this.#history.toSpliced(place, 0, { role: "system", content: NOTE.text }),
      { role: "system", content: INSTRUCTIONS.replaceAll("{{char}}", KEEPER.name) },
    ];
  }
}
