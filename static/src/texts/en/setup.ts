/** Texts of the first visit. */

/** English. */
export const setup = {
  welcome: {
    step: (at: number, of: number) => `Step ${at} of ${of}`,
    titles: { model: "Choose a model", name: "Your name", passkey: "Protect Parlor with a passkey" },
    modelText: "Parlor needs a language model to chat with. Looking for servers on this machine.",
    modelThere: (name: string) => `Using “${name}”. You can change this in settings at any time.`,
    nameHint: "What characters and models can call you. Stored on this server and sent only to your models.",
    passkeyLocal:
      "You don’t need a passkey on this machine. From other devices, Parlor asks for one, and each address has its own. You can create one for this address now.",
    passkeyThere: "This address already has a passkey. Add more devices under Settings, Privacy.",
    goOn: "Continue",
    skip: "Skip",
    start: "Start chatting",
    container:
      "Parlor runs in a container and searches only inside it. To search the host machine as well, set this variable as in compose.yaml and restart the container.",
    elsewhere: (hosts: string) =>
      `Parlor searched ${hosts}. It can find a server there only if the server accepts connections from other machines.`,
    listen: "Start each server like this:",
    listenNote: "Other machines on your network can then reach it, too.",
  },
  quickModel: {
    title: "Or download a model now",
    text: (memory: string, disk: string) =>
      `These fit this machine, which has ${memory} of memory and ${disk} of free disk space. Parlor runs the model for you.`,
    none: (memory: string, disk: string) =>
      `This machine has ${memory} of memory and ${disk} of free disk space, too little for the models that Parlor knows. Use a server on another machine.`,
    failed: "Couldn’t find models for this machine",
    levels: { fast: "Fast", balanced: "Balanced", best: "Best" },
    memory: (size: string) => `needs ${size} of memory`,
    speed: (words: string) => `about ${words} words per second`,
    starting: "Starting the model",
    start: "Start",
    download: "Download",
    gone: (name: string) => `${name} is no longer on the hub`,
    install: "To run models, Parlor needs llama-server. Install it on the machine that runs Parlor:",
    check: "Check again",
    which: "Which server do you run?",
  },
};
