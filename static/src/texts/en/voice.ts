/** Speech: the server that speaks, the voices, the library of samples. */
import { counter } from "../plural.ts";

const count = counter("en");

/** English. */
export const voice = {
  voice: {
    title: "Voice",
    intro: "Messages are read aloud by a speech server of your own.",
    loadFailed: "The voice settings could not be loaded",

    bar: "Reading aloud",
    phases: { preparing: "Waiting for the voice", speaking: "Reading aloud", paused: "Paused" },
    pause: "Pause",
    resume: "Go on reading",
    stop: "Stop",

    server: "Speech server",
    url: "Address",
    urlHint: "Of any server with OpenAI’s speech interface, such as http://localhost:8880/v1.",
    keyHint: "Only for servers that ask for one.",
    model: "Model",
    modelHint: "Leave empty for the server’s own choice.",
    modelOffered: (n: number) => count(n, { one: "model to choose", other: "models to choose" }),
    format: "Format",
    formatHint: "MP3 begins to sound before all of it is there.",
    formats: {
      mp3: "MP3",
      opus: "Opus",
      aac: "AAC",
      flac: "FLAC",
      wav: "WAV",
      pcm: "PCM, without a header",
    },
    saved: "Speech server saved",
    saveFailed: "The speech server could not be saved",
    try: "Save and test",
    trying: "Testing",
    sentence: "Good evening. This is how I sound.",
    trial: {
      good: "The server speaks",
      bad: "The test failed",
      firstSound: (ms: string) => `First sound after ${ms} ms`,
      models: (n: number) => count(n, { one: "model", other: "models" }),
      noModels: "It does not list its models",
      voices: {
        upstream: (n: number) => count(n, { one: "voice from the server", other: "voices from the server" }),
        files: (n: number) => count(n, { one: "voice from your library", other: "voices from your library" }),
        catalogue: (n: number) =>
          n === 0
            ? "The server does not list its voices; enter one by its name."
            : `The server does not list its voices; ${n} are known for this model.`,
      },
    },

    sound: "How it sounds",
    voice: "Voice",
    serverVoice: "The server’s default",
    sources: { upstream: "The server’s voices", files: "Your library", catalogue: "Known for this model" },
    other: "Another name",
    otherName: "Name of the voice",
    otherHint: "As the speech server knows it.",
    hear: (what: string) => `Hear: ${what}`,
    speed: "Speed",
    times: (n: string) => `${n} ×`,
    quoted: "Voice for dialogue",
    quotedHint: "For text in quotation marks, where the character has no voice of its own.",
    asSet: "The voice above",
    narration: "Voice for narration",
    narrationHint: "For text outside of quotation marks.",
    asSpeaker: "The voice of whoever speaks",
    auto: "Read replies aloud as they come",
    autoHint: "On the device that asked for the reply. The first sentence sounds while the rest is being written.",

    character: "Voice when read aloud",
    characterHint: "Kept in the card. Voices belong to your speech server; on another one this name may mean nothing.",
    noCharacterVoice: "The voice of the settings",

    library: {
      title: "Voice library",
      intro:
        "Samples whose voice some servers can speak in. Five to fifteen seconds of one clear voice work best. Use a voice only with its owner’s permission.",
      loadFailed: "The samples could not be loaded",
      record: "Record",
      upload: "Upload",
      fetch: "From an address",
      addFailed: "The sample could not be added",
      imports: "Being fetched",
      empty: "No samples yet",
      emptyText: "Record your voice, or upload a recording.",
      hear: (name: string) => `Play ${name}`,
      stopHearing: (name: string) => `Stop ${name}`,
      more: (name: string) => `More for ${name}`,
      rename: "Rename",
      remove: "Delete",
      removed: (name: string) => `${name} deleted`,
      name: "Name",
      nameMissing: "A name is needed",

      fetchTitle: "Sample from an address",
      url: "Address of the recording",
      urlHint: "An audio file, or a page with video or audio. The request goes there from your server.",
      urlBad: "An address that begins with http:// or https://",
      from: "From",
      to: "To",
      pieceHint: "Minutes and seconds in the recording. Empty takes its beginning.",
      pieceBad: "Write times as 1:15; the end comes after the beginning.",
      fetchStart: "Fetch",
      fetched: (name: string) => `${name} is in the library`,
      fetchFailed: "The sample could not be fetched",

      recordTitle: "Record a sample",
      recordHint:
        "Read a few sentences in the voice you want to hear, in a quiet room. It ends by itself after two minutes.",
      recordStart: "Begin recording",
      recordStop: "End recording",
      recordAgain: "Record again",
      recording: "Recording",
      recorded: "Recorded",
      notRecording: "Not recording yet",
      recordingName: (time: string) => `Recording ${time}`,
      preview: "The recording",
      microphoneRefused: "The browser did not allow the microphone. Allow it for this page in its own settings.",
      microphoneMissing: "There is no microphone for this page. Browsers give one only over HTTPS or on localhost.",
    },
  },
};
