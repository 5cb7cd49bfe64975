// Makes two files with fixed names, which the package reads into each page that it writes.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../python/unisono/_web",
    emptyOutDir: true,
    target: "es2022",
    cssMinify: true,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "unisonoView", fileName: () => "view.js", cssFileName: "view" },
  },
});
