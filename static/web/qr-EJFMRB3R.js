import{a}from"./chunk-LCEDUI63.js";import"./chunk-OOJM4CTU.js";export{a as drawQr};
