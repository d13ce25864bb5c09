/** The sound of one reply, which arrives in pieces. */
import { Buffer } from "node:buffer";
import type { AudioPiece } from "../chat_event.ts";

/** Collects the pieces. Each is base64 of its own. */
export class Sound {
  #pieces: Uint8Array[] = [];
  #id: string | undefined;
  #expiresAt: number | undefined;

  /** Adds a piece. */
  add({ id, data, expires_at: expiresAt }: AudioPiece): void {
    this.#id = id ?? this.#id;
    this.#expiresAt = expiresAt ?? this.#expiresAt;
    if (data !== undefined) this.#pieces.push(Buffer.from(data, "base64"));
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Under which the server knows the sound, and until when. */
  get reference(): { id?: string; expires_at?: number } {
    return {
      ...(this.#id !== undefined && { id: this.#id }),
      ...(this.#expiresAt !== undefined && { expires_at: this.#expiresAt }),
    };
  }

  /** Returns the whole sound. */
  toBytes(): Uint8Array {
    return Buffer.concat(this.#pieces);
  }

  /** Returns the field `audio` of a message of OpenAI's API. */
  toMessageAudio(transcript: string): Record<string, unknown> {
    return { ...this.reference, data: Buffer.concat(this.#pieces).toString("base64"), transcript };
  }
}
